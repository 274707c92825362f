// The way to a provider on this machine. It can be shut, as if the provider were down, and it can swallow what is said, as if the
// provider hung.

import { connect, createServer } from 'node:net'

/** Opens a gate at a free port; `issuer` is the provider's name by it. Nothing is behind it before `target` is a port. */
export async function openGate() {
  const open = new Set()
  const gate = { target: undefined, accepted: 0 }
  let lastAnswer
  const keep = (socket) => {
    open.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
  }
  const server = createServer((socket) => {
    gate.accepted += 1
    keep(socket)
    // it hangs
    if (gate.target === undefined) return socket.resume()
    const behind = connect(gate.target, '127.0.0.1')
    keep(behind)
    socket.pipe(behind)
    behind.on('data', (chunk) => {
      socket.write(chunk)
      if (lastAnswer?.test(chunk.toString('latin1'))) socket.end(() => gate.shut())
    })
    behind.on('end', () => socket.end()).on('close', () => socket.destroySoon())
    socket.on('close', () => behind.destroy())
  })
  const listen = (port) => new Promise((listening) => server.listen(port, '127.0.0.1', listening))
  await listen(0)
  gate.port = server.address().port
  gate.issuer = `http://127.0.0.1:${gate.port}`
  /** Takes no connections any more, and breaks those that there are. */
  gate.shut = () => {
    server.close()
    for (const socket of open) socket.destroy()
  }
  /** Shuts as soon as the provider has led a browser to an address that begins so. */
  gate.shutAfter = (address) => (lastAnswer = new RegExp(`^location: ${address}`, 'im'))
  gate.reopen = () => {
    lastAnswer = undefined
    return listen(gate.port)
  }
  return gate
}

// A proxy before a provider on this machine. It can simulate a provider that is down, and one that hangs.

import { connect, createServer } from 'node:net'

/** Opens a proxy at a free port; `issuer` is the provider's name by it. Nothing is behind it before `target` is a port. */
export async function openProxy() {
  const open = new Set()
  const proxy = { target: undefined, accepted: 0 }
  let lastAnswer
  const keep = (socket) => {
    open.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
  }
  const server = createServer((socket) => {
    proxy.accepted += 1
    keep(socket)
    // it hangs
    if (proxy.target === undefined) return socket.resume()
    const behind = connect(proxy.target, '127.0.0.1')
    keep(behind)
    socket.pipe(behind)
    behind.on('data', (chunk) => {
      socket.write(chunk)
      if (lastAnswer?.test(chunk.toString('latin1'))) socket.end(() => proxy.shut())
    })
    behind.on('end', () => socket.end()).on('close', () => socket.destroySoon())
    socket.on('close', () => behind.destroy())
  })
  const listen = (port) => new Promise((listening) => server.listen(port, '127.0.0.1', listening))
  await listen(0)
  proxy.port = server.address().port
  proxy.issuer = `http://127.0.0.1:${proxy.port}`
  /** Takes no connections any more, and breaks those that there are. */
  proxy.shut = () => {
    server.close()
    for (const socket of open) socket.destroy()
  }
  /** Shuts as soon as the provider has led a browser to an address that begins so. */
  proxy.shutAfter = (address) => (lastAnswer = new RegExp(`^location: ${address}`, 'im'))
  proxy.reopen = () => {
    lastAnswer = undefined
    return listen(proxy.port)
  }
  return proxy
}

// Waiting for programs on this machine.

import { createServer } from 'node:net'

export const pause = (ms) => new Promise((over) => setTimeout(over, ms))

/** Serves at this port or a free one, and answers with it. */
export async function listenAnywhere(server, port = 0) {
  await new Promise((listening) => server.listen(port, '127.0.0.1', listening))
  return server.address().port
}

/** A port that was free a moment ago. */
export async function freePort() {
  const server = createServer()
  const port = await listenAnywhere(server)
  await new Promise((closed) => server.close(closed))
  return port
}

// The browser that the checks drive, and sites of this machine that it visits.

import { createServer } from 'node:http'
import { chromium } from 'playwright-core'

/** Starts the browser. */
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-quic',
    '--disable-sync', '--no-first-run'],
})

/** Serves a site at a free port; `origin` is where. */
export async function serve(answer) {
  const server = createServer(answer)
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address()
  return { port, origin: `http://localhost:${port}`, close: () => server.close() }
}

// The browser that the checks drive, and sites of this machine that it visits.

import { createServer } from 'node:http'
import { chromium } from 'playwright-core'

/** Milliseconds after which a check gives up waiting for what must happen; scripts/lib.sh sets it for all checks. */
export const PATIENCE = Number(process.env.CHANCERY_PATIENCE || 180) * 1000

/** Starts the browser; its pages wait for as long as checks wait. */
export async function launch() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium-headless-shell',
    // each site has its process as in a browser with windows, so that frames are told of as little of each other
    args: ['--no-sandbox', '--site-per-process', '--disable-background-networking', '--disable-component-update', '--disable-quic',
      '--disable-sync', '--no-first-run'],
  })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async (options) => {
    const context = await newContext(options)
    context.setDefaultTimeout(PATIENCE)
    return context
  }
  return browser
}

/** Serves a site at a free port; `origin` is where. */
export async function serve(answer) {
  const server = createServer(answer)
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address()
  return { port, origin: `http://localhost:${port}`, close: () => server.close() }
}

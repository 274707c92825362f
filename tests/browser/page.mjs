// A page that runs ceremonies in a real browser, and the authenticators that are plugged into it.

import { createServer } from 'node:http'
import { chromium } from 'playwright-core'

const PAGE = `<!doctype html><title>passkeys</title><script>
const tried = async (ceremony) => {
  try { return { answer: (await ceremony()).toJSON() } } catch (error) { return { error: error.name } }
}
const register = (options) => tried(() => navigator.credentials.create({
  publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }))
const authenticate = (options) => tried(() => navigator.credentials.get({
  publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }))
</script>`

/** Serves the page at a free port; `origin` is where. */
async function serve() {
  const server = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end(PAGE))
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return { origin: `http://localhost:${server.address().port}`, close: () => server.close() }
}

/** Opens the page, with its origin as `origin`, and a second one of another origin. */
export async function open() {
  const [own, other] = [await serve(), await serve()]
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-quic',
      '--disable-sync', '--no-first-run'],
  })
  const context = await browser.newContext()
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await page.goto(own.origin)
  await devtools.send('WebAuthn.enable', { enableUI: false })
  return {
    origin: own.origin,
    register: (options) => page.evaluate((given) => register(given), options),
    authenticate: (options) => page.evaluate((given) => authenticate(given), options),
    /** Runs something on the page of the other origin. */
    async elsewhere(run) {
      await page.goto(other.origin)
      const result = await run()
      await page.goto(own.origin)
      return result
    },
    /** Plugs an authenticator in; answers how to use it by hand. */
    async plugIn(more = {}) {
      const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal', hasResidentKey: true,
          hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true, ...more,
        },
      })
      return {
        credentials: async () => (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
        put: (credential) => devtools.send('WebAuthn.addCredential', { authenticatorId, credential }),
        unplug: () => devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId }),
      }
    },
    async close() {
      await browser.close()
      own.close()
      other.close()
    },
  }
}

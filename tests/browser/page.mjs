// A page that runs ceremonies in a real browser, and the authenticators that are plugged into it.

import { launch, serve } from './chromium.mjs'

const PAGE = `<!doctype html><title>passkeys</title><script>
const tried = async (ceremony) => {
  try { return { answer: (await ceremony()).toJSON() } } catch (error) { return { error: error.name } }
}
const register = (options) => tried(() => navigator.credentials.create({
  publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }))
const authenticate = (options) => tried(() => navigator.credentials.get({
  publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }))
</script>`

/** Opens the page, with its origin as `origin`, and a second one of another origin. */
export async function open() {
  const show = (_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
  const [own, other] = [await serve(show), await serve(show)]
  const browser = await launch()
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

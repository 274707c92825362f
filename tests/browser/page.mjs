// A page that runs ceremonies in a real browser.

import { allowAuthenticators } from './authenticator.mjs'
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
  await page.goto(own.origin)
  const plugIn = await allowAuthenticators(page)
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
    plugIn,
    async close() {
      await browser.close()
      own.close()
      other.close()
    },
  }
}

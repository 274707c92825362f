// The administrators' view: a provider is connected in the console, and people of external providers and their sign-ins are found there.

import { base } from '../browser/api.mjs'
import { hold } from '../browser/sign_in/cases.mjs'
import { PASSWORD } from '../browser/sign_in/home.mjs'
import { ada } from './people.mjs'
import { MISMATCH, options, signInAtGoogle } from './stand_ins.mjs'
import { signIn, visit } from './walk.mjs'

const ADMINISTRATOR = { firstName: 'Margaret', lastName: 'Hamilton', emailAddress: 'mh@example.com', loginName: 'margaret' }

/** Signs the first administrator in by the setup link. */
async function comeIn(page) {
  await page.goto(base + process.env.CHANCERY_SETUP)
  const typed = { ...ADMINISTRATOR, password: PASSWORD, repeated: PASSWORD }
  for (const [name, text] of Object.entries(typed)) await page.fill(`#f-${name}`, text)
  await page.press('#f-repeated', 'Enter')
  await page.fill('#username', ADMINISTRATOR.loginName)
  await page.fill('#password', PASSWORD)
  await page.press('#password', 'Enter')
  await page.waitForURL(`${base}/console/welcome`)
}

let administrator

/** Runs this with a page of the console, where the first administrator is signed in: the setup link is valid once. */
async function inConsole(browser, run) {
  const settings = { locale: 'en-GB', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' }
  const context = await browser.newContext({ ...settings, storageState: administrator })
  try {
    const page = await context.newPage()
    if (!administrator) {
      await comeIn(page)
      administrator = await context.storageState()
    }
    await run(page)
  } finally {
    await context.close()
  }
}

/** From the button of the trial to the page of the provider. */
async function beginTrial(page, item, origin) {
  await page.goto(`${item}/trial`)
  await page.click('main form button')
  await page.click(`main a[href^="${origin}"]`)
}

/**
 * A new administrator connects Google by what the pages say: the redirect address is copied and registered there, the trial is signed in
 * to, and a person signs in by the button. The instance with the person.
 */
export async function googleConnected(browser, { origin, server, app }) {
  const name = 'Google accounts'
  let item
  await inConsole(browser, async (page) => {
    await page.goto(`${base}/console/IdpInstance`)
    await page.click('.acts a.main')
    await page.click('.kinds a[href$="kind=Google"]')
    await page.fill('#f-name', name)
    await page.click('.bar button.main')
    await page.waitForURL(/step=address/)
    item = page.url().split('/connect')[0]
    const address = (await page.textContent('main code')).trim()
    await page.click('.acts a.main')
    await page.waitForURL(/step=access/)
    for (const [field, text] of Object.entries(options)) await page.fill(`#f-${field}`, text)
    await page.click('.bar button.main')
    await page.waitForURL(/trial$/)
    await beginTrial(page, item, origin)
    const refused = await page.textContent('body')
    hold(`${name}: an address that is not registered is refused there`, refused.includes(MISMATCH), refused)
    server.registerAtGoogle(address)
    await beginTrial(page, item, origin)
    await signInAtGoogle(page, ada)
    await page.waitForURL(/trial[?]/)
    await page.click('main form button')
    await page.waitForSelector('.checks li')
    const tried = await page.textContent('main')
    hold(`${name}: the trial shows the claims`, tried.includes('All checks passed') && tried.includes(ada.email), tried)
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/connect-trial.png` })
    await page.click('main a[href$="step=serve"]')
    for (const served of ['Default', app.name]) await page.getByRole('switch', { name: served, exact: true }).check()
    await page.click('.bar button.main')
    await page.waitForURL(/done=connected/)
    hold(`${name}: the last step makes it active`, (await page.textContent('main')).includes('Users can sign in here'), item)
  })
  const instance = { id: item.split('/').at(-1), name, app }
  const way = { instance, provider: { signIn: signInAtGoogle } }
  let sub
  await visit(browser, async (page) => {
    const { claims } = await signIn(page, way, ada)
    sub = claims.sub
    hold(`${name}: a person signs in by the button`, claims.email === ada.email && claims.amr.join() === 'fed', JSON.stringify(claims))
  })
  return { instance, person: ada, sub }
}

/** Finds each person by their address, among people of other instances with the same one, and lists their sign-ins. */
export async function isFound(browser, found) {
  await inConsole(browser, async (page) => {
    for (const { instance, person, sub } of found) {
      // without an address and the parts of a name from the provider, the page of the instance shows the id
      const [place, name] = person.email
        ? [`ApplicationUser?q=${encodeURIComponent(person.email)}`, person.name]
        : [`IdpInstance/${instance.id}/people`, sub]
      await page.goto(`${base}/console/${place}`)
      await page.locator(`main a[href*="/console/ApplicationUser/${sub}"]`).first().click()
      const shown = await page.locator('main').innerText()
      hold(`${instance.name}: the person is found in the console`, shown.includes(name) && shown.includes(person.email), shown)
      await page.goto(`${base}/console/SignInRecord?of=platformUserId:${sub}`)
      const listed = await page.locator('main').innerText()
      hold(`${instance.name}: with the records of signing in`, listed.includes(name), listed)
    }
  })
}

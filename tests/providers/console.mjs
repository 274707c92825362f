// The administrators' view: people of external providers and their sign-ins are found in the console.

import { base } from '../browser/api.mjs'
import { hold } from '../browser/sign_in/cases.mjs'
import { PASSWORD } from '../browser/sign_in/home.mjs'

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

/** Finds each person by their address, among people of other instances with the same one, and lists their sign-ins. */
export async function isFound(browser, found) {
  const context = await browser.newContext({ locale: 'en-GB' })
  try {
    const page = await context.newPage()
    await comeIn(page)
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
  } finally {
    await context.close()
  }
}

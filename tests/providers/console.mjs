// The administrators' side: somebody who came from elsewhere is found in the console, with what they did.

import { base } from '../browser/api.mjs'
import { hold } from '../browser/sign_in/cases.mjs'
import { PASSWORD } from '../browser/sign_in/home.mjs'

const ADMINISTRATOR = { firstName: 'Margaret', lastName: 'Hamilton', emailAddress: 'mh@example.com', loginName: 'margaret' }

/** The first administrator comes in by the link of the first start. */
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

/** A person is found by their address, among those who have the same one elsewhere, and their sign-ins are listed. */
export async function isFound(browser, found) {
  const context = await browser.newContext({ locale: 'en-GB' })
  try {
    const page = await context.newPage()
    await comeIn(page)
    for (const { instance, person, sub } of found) {
      // of whom a provider tells neither an address nor the parts of the name, the id is shown, on the page of the instance
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

// What journeys through the pages share. A journey stops at each page in each of its states, where all that every page
// must be is looked at; what else must hold of it is said as faults.

import { base } from '../api.mjs'
import { PASSWORD } from './home.mjs'
import { focusOn } from './keys.mjs'
import { look } from './look.mjs'
import { Visitor } from './visitor.mjs'

export const text = async (visitor, selector) => (await visitor.page.locator(selector).first().innerText()).trim()
export const press = (visitor, selector) => visitor.press(visitor.page.locator(selector))
export const unless = (holds, fault) => (holds ? [] : [fault])
export const says = async (visitor, selector, words) =>
  unless((await text(visitor, selector)).includes(words), `it does not say ${words}`)

/** What is wrong with how fields are said to be wrong, to people and to what reads pages aloud. */
export async function refusalFaults({ page }, ids) {
  const faults = unless((await page.locator('[role=alert] li').count()) > 0, 'it has no alert')
  faults.push(...await focusOn(page, ids[0]).then(() => [], (elsewhere) => [elsewhere.message]))
  for (const id of ids) {
    const isLinked = await page.locator(`#${id}`).evaluate((one) => one.ariaInvalid === 'true' &&
      Boolean(document.getElementById(one.getAttribute('aria-describedby'))?.textContent.trim()))
    faults.push(...unless(isLinked, `${id} is not marked as wrong, with words on what is wrong`))
  }
  return faults
}

/** The form of the password page; a passkey has one of its own. */
export const passwordForm = (page) => page.locator('form:has(#password)')

/** Sends the form of the password page beside the browser, which stays where it is. */
export async function post({ page, context }, username, password = PASSWORD, headers = {}) {
  const action = new URL(await passwordForm(page).getAttribute('action'), base).href
  const csrf = await passwordForm(page).locator('[name=csrf]').inputValue()
  return context.request.post(action, { form: { csrf, username, password }, headers, maxRedirects: 0 })
}

/** Somebody on a journey. */
async function travel(visitor, home, journey, who, hold) {
  const { language, scheme } = who
  const stop = async (name, faults = [], status = 200) => {
    const seen = await look(visitor.page, language, who)
    const shown = visitor.shown().status
    if (shown !== status) seen.push(`its status is ${shown}`)
    const all = [...seen, ...faults, ...(await visitor.complaints())]
    hold(`${name}, ${language}, ${scheme}`, all.length === 0, all.join('\n        '))
  }
  stop.prove = (what, ...holds) => hold(`${what}, ${language}`, ...holds)
  await journey(visitor, home, stop)
}

/** Who travels. Between them people see each page in both languages and in both colour schemes. */
const TRAVELLERS = [{ language: 'en', scheme: 'light', motion: 'reduce' }, { language: 'de', scheme: 'dark', motion: 'reduce' }]

/** Journeys as cases. `more` says what else is so of the browsers, e.g. that they run no script. */
export const travels = (browser, home, hold, journeys, more = {}) => journeys.flatMap((journey) =>
  TRAVELLERS.map((traveller) => ({ ...traveller, ...more })).map((who) => [`${journey.name}, ${who.language}`,
    () => Visitor.visit(browser, who, (visitor) => travel(visitor, home, journey, who, hold))]))

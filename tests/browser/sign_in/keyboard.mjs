// A sign-in by the keyboard alone, by a password.

import { base } from '../api.mjs'
import { PASSWORD, request } from './home.mjs'
import { enter, focusOn, tabThrough, tabTo } from './keys.mjs'
import { Visitor } from './visitor.mjs'

/** Between them: with script and without, both languages, schemes, issuers, with movement and without. */
const WALKS = [
  { language: 'en', script: true, scheme: 'light', motion: 'no-preference', issuer: 'installation' },
  { language: 'de', script: false, scheme: 'dark', motion: 'reduce', issuer: 'tenant' },
  { language: 'de', script: true, scheme: 'light', motion: 'reduce', issuer: 'installation' },
  { language: 'en', script: false, scheme: 'dark', motion: 'no-preference', issuer: 'tenant' },
]
const WORDS = {
  en: { submit: 'Sign in', passkey: 'Sign in with a passkey', pass: 'I have an access pass', other: 'Use another account', out: 'Sign out', stay: 'Stay signed in' },
  de: { submit: 'Anmelden', passkey: 'Mit Passkey anmelden', pass: 'Ich habe einen Zugangspass', other: 'Anderes Konto verwenden', out: 'Abmelden', stay: 'Angemeldet bleiben' },
}
const LANGUAGES = ['English', 'Deutsch']

/** Runs in the page: how light its ground is, and how long a button takes to change. */
function looks() {
  const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number)
  const button = document.querySelector('.button')
  return { light: (red + green + blue) / 765, takes: parseFloat(getComputedStyle(button).transitionDuration) }
}

async function walk(visitor, { apps, people, issuers }, walked, prove) {
  const { page } = visitor
  const words = WORDS[walked.language]
  const issuer = issuers[walked.issuer]
  const order = async (what, names) => {
    const way = await tabThrough(page)
    const faults = way.names.join() === names.join() ? way.faults : [`the focus goes to ${way.names.join(', ')}`, ...way.faults]
    prove(`${what}: the focus is seen, from top to bottom`, faults.length === 0, faults.join('; '))
  }

  const first = request(apps.plain, issuer)
  await page.goto(first.address)
  await focusOn(page, 'username')
  const { light, takes } = await page.evaluate(looks)
  prove('the colours are those that were asked for', walked.scheme === 'dark' ? light < 0.2 : light > 0.8, light)
  prove('movement is as was asked for', (walked.motion === 'reduce') === (takes === 0), takes)
  await order('the password page', ['username', 'password', 'remember', words.submit, ...(walked.script ? [words.passkey] : []), words.pass, ...LANGUAGES])

  await tabTo(page, 'username')
  await page.keyboard.type(people.ann)
  await page.keyboard.press('Enter')
  prove('Enter asks for what is missing', await page.locator('#password').evaluate((one) => one === document.activeElement))
  await page.keyboard.type(PASSWORD)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  prove('space ticks the box', await page.locator('#remember').isChecked())
  await tabTo(page, words.submit)
  await enter(page)
  const answer = await visitor.arrived(first)
  prove('a sign-in', answer.has('code') && answer.get('state') === first.state && answer.get('iss') === issuer)
  const cookies = await visitor.context.cookies(base)
  prove('the session is kept', cookies.some((one) => one.name.endsWith('chancery-session') && one.expires > 0))

  const choice = request(apps.plain, issuer, { prompt: 'select_account' })
  await page.goto(choice.address)
  await order('the choice of an account', [`Ann Archer${people.ann}@example.com`, words.other, ...LANGUAGES])
  await tabTo(page, words.other)
  await enter(page, 'Space')
  await focusOn(page, 'username')
  await page.keyboard.type(people.bob)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PASSWORD)
  await enter(page)
  prove('another account, by Enter in the field', (await visitor.arrived(choice)).has('code'))

  await page.goto(`${issuer}/connect/endsession?client_id=${apps.plain.id}&post_logout_redirect_uri=${apps.plain.goodbye}`)
  await order('the question whether to sign out', [words.out, words.stay, ...LANGUAGES])
  await tabTo(page, words.out)
  await enter(page)
  // by a page of the server's own, which leads on
  await page.waitForURL((url) => url.href.startsWith(apps.plain.goodbye)).catch(() => {})
  prove('signed out, back at the app', page.url().startsWith(apps.plain.goodbye), page.url())
  const complaints = await visitor.complaints()
  prove('headers and console', complaints.length === 0, complaints.join('; '))
}

/** The walks as cases. */
export const keyboardCases = (browser, home, hold) => WALKS.map((walked) => {
  const how = Object.entries(walked).map(([name, value]) => (name === 'script' ? `script ${value ? 'on' : 'off'}` : value))
  const about = `by keyboard (${how.filter((one) => one !== 'no-preference').join(', ')})`
  const prove = (what, ...holds) => hold(`${about}: ${what}`, ...holds)
  return [about, () => Visitor.visit(browser, walked, (visitor) => walk(visitor, home, walked, prove))]
})

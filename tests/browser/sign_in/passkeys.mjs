// Passkeys on the pages, by an authenticator of Chromium's: made, used, put off, refused; and what there is without them.

import { base } from '../api.mjs'
import { allowAuthenticators } from '../authenticator.mjs'
import { PASSWORD, makeNewcomer, makePerson, request } from './home.mjs'
import { press, refusalFaults, says, travels, unless } from './journey.mjs'
import { enter, focusOn, tabThrough, tabTo } from './keys.mjs'

const WORDS = {
  en: { make: 'Create a passkey', later: 'Not now', use: 'Sign in with a passkey', pass: 'I have an access pass', password: 'Choose a password instead' },
  de: { make: 'Passkey anlegen', later: 'Nicht jetzt', use: 'Mit Passkey anmelden', pass: 'Ich habe einen Zugangspass', password: 'Stattdessen ein Kennwort wählen' },
}
const named = (visitor, role, word) => visitor.page.getByRole(role, { name: WORDS[visitor.language][word] })
const again = (app) => request(app, base, { prompt: 'login' })
const plugIn = async ({ page }, more) => (await allowAuthenticators(page))(more)

/** Presses a button that asks the authenticator, which refuses; the faults of what the page says then. */
async function isRefused(visitor, word) {
  const button = named(visitor, 'button', word)
  await button.click()
  const alert = visitor.page.getByRole('alert')
  await alert.waitFor()
  return [...unless((await alert.innerText()).trim() !== '', 'its alert says nothing'),
    ...unless(await button.isEnabled(), 'nobody can try again')]
}

async function makesAndUses(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`pat-${visitor.language}`)
  const device = await plugIn(visitor)
  const first = request(apps.plain)
  await page.goto(first.address)
  await visitor.signIn(name)
  const faults = unless((await named(visitor, 'button', 'later').count()) === 1, 'it cannot be put off')
  await stop('the offer of a passkey', [...faults, ...unless(await page.locator('[data-without]').isHidden(), 'it says that there is no script')])
  await device.verifies(false)
  await stop('the offer, refused by the authenticator', await isRefused(visitor, 'make'))
  await device.verifies(true)
  await visitor.press(named(visitor, 'button', 'make'))
  stop.prove('a passkey is made by one more click', (await visitor.arrived(first)).has('code'))
  const [made, ...others] = await device.credentials()
  stop.prove('the authenticator keeps it, of this server', made.rpId === new URL(base).hostname && made.isResidentCredential && others.length === 0)

  // nobody touches it, so that the browser does not fill it in by itself
  await device.isTouched(false)
  const second = again(apps.plain)
  await page.goto(second.address)
  await stop('the password page of who has a passkey', unless(await named(visitor, 'button', 'use').isVisible(), 'it has no button for it'))
  await device.isTouched(true)
  await device.verifies(false)
  await stop('a passkey that the authenticator refuses', await isRefused(visitor, 'use'))
  await device.verifies(true)
  await visitor.press(named(visitor, 'button', 'use'))
  stop.prove('the button signs in', (await visitor.arrived(second)).has('code'))

  const third = again(apps.plain)
  await page.goto(third.address).catch(() => {})
  stop.prove('so does what the browser fills in', (await visitor.arrived(third)).has('code'))
  await visitor.context.clearCookies()
  await device.unplug()
  // a browser that fills nothing in, whose passkey the server does not know any more
  await page.addInitScript(() => (PublicKeyCredential.isConditionalMediationAvailable = async () => false))
  await (await plugIn(visitor)).put({ ...made, credentialId: Buffer.alloc(32, 7).toString('base64') })
  await page.goto(request(apps.plain).address)
  await visitor.press(named(visitor, 'button', 'use'))
  const told = (await page.locator('.problems[role=alert] li').count()) === 1 && (await page.locator('#password').count()) === 1
  await stop('a passkey that the server refuses', unless(told, 'it does not say so'))
}

async function putsOff(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`quinn-${visitor.language}`)
  const one = request(apps.plain)
  await page.goto(one.address)
  await visitor.signIn(name)
  await visitor.press(named(visitor, 'button', 'later'))
  stop.prove('an offer that is put off leads to the app', (await visitor.arrived(one)).has('code'))
  const other = again(apps.plain)
  await page.goto(other.address)
  await visitor.signIn(name)
  stop.prove('and rests', (await visitor.arrived(other)).has('code'))
}

async function hasNoScript(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`rae-${visitor.language}`)
  const one = request(apps.plain)
  await page.goto(one.address)
  await stop('the password page without script', unless(await named(visitor, 'button', 'use').isHidden(), 'it shows what needs script'))
  await visitor.signIn(name)
  const faults = await says(visitor, '[data-without]', visitor.language === 'de' ? 'Skripte' : 'scripts')
  await stop('the offer of a passkey without script', [...faults, ...unless(await named(visitor, 'button', 'make').isHidden(), 'it shows what needs script')])
  await visitor.press(named(visitor, 'button', 'later'))
  stop.prove('who runs no script puts it off', (await visitor.arrived(one)).has('code'))
}

/** Shows an access pass, after a wrong one. */
async function showPass(visitor, app, stop, { name, pass }) {
  const { page } = visitor
  const one = request(app)
  await page.goto(one.address)
  await visitor.press(named(visitor, 'link', 'pass'))
  if (stop) {
    await stop('the page of an access pass')
    await page.fill('#username', name)
    await page.fill('#pass', 'AAAA-AAAA-AAAA')
    await press(visitor, 'button.main')
    const kept = (await page.locator('#username').inputValue()) === name && (await page.locator('#pass').inputValue()) === ''
    await stop('a wrong access pass', [...unless(kept, 'it does not keep the name alone'), ...(await refusalFaults(visitor, ['pass']))])
  }
  await page.fill('#username', name)
  await page.fill('#pass', pass)
  await press(visitor, 'button.main')
  return one
}

async function comesByPass(visitor, { apps }, stop) {
  const { page } = visitor
  const device = await plugIn(visitor)
  const one = await showPass(visitor, apps.plain, stop, await makeNewcomer(`sam-${visitor.language}`))
  await stop('a passkey that is required', unless((await named(visitor, 'button', 'later').count()) === 0, 'it can be put off'))
  await visitor.press(named(visitor, 'button', 'make'))
  stop.prove('from an access pass to a passkey', (await visitor.arrived(one)).has('code'))
  await visitor.context.clearCookies()
  const next = request(apps.plain)
  await page.goto(next.address).catch(() => {})
  stop.prove('which alone signs in', (await visitor.arrived(next)).has('code'))
  stop.prove('with one passkey in all', (await device.credentials()).length === 1)
}

async function prefersPassword(visitor, { apps }, stop) {
  const { page } = visitor
  const newcomer = await makeNewcomer(`tess-${visitor.language}`)
  const one = await showPass(visitor, apps.plain, null, newcomer)
  await visitor.press(named(visitor, 'button', 'password'))
  await stop('a first password instead', unless((await page.locator('#current_password').count()) === 0, 'it asks for a password that there is not'))
  await page.fill('#new_password', PASSWORD)
  await page.fill('#repeated_password', 'something else')
  await press(visitor, 'button.main')
  await stop('a first password that differs', await refusalFaults(visitor, ['repeated_password']))
  await page.fill('#new_password', PASSWORD)
  await page.fill('#repeated_password', PASSWORD)
  await press(visitor, 'button.main')
  await visitor.press(named(visitor, 'button', 'later'))
  stop.prove('a first password leads to the app', (await visitor.arrived(one)).has('code'))
  const next = again(apps.plain)
  await page.goto(next.address)
  await visitor.signIn(newcomer.name)
  stop.prove('and signs in', (await visitor.arrived(next)).has('code'))
}

async function goesByKeyboard(visitor, { apps }, stop) {
  const { page } = visitor
  const words = WORDS[visitor.language]
  await plugIn(visitor)
  const name = await makePerson(`uma-${visitor.language}`)
  const one = request(apps.plain)
  await page.goto(one.address)
  await focusOn(page, 'username')
  await page.keyboard.type(name)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PASSWORD)
  await enter(page)
  const { names, faults } = await tabThrough(page)
  const wanted = [words.make, words.later, 'English', 'Deutsch']
  const all = [...faults, ...unless(names.join() === wanted.join(), `the focus goes to ${names}`)]
  stop.prove('by keyboard: the offer of a passkey: the focus is seen, from top to bottom', all.length === 0, all.join('; '))
  await tabTo(page, words.make)
  await enter(page, 'Space')
  stop.prove('by keyboard: a passkey is made', (await visitor.arrived(one)).has('code'))
}

/** What people do with passkeys, as cases. */
export const passkeyCases = (browser, home, hold) => [
  ...travels(browser, home, hold, [makesAndUses, putsOff, comesByPass, prefersPassword, goesByKeyboard]),
  ...travels(browser, home, hold, [hasNoScript], { script: false }),
]

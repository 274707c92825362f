// What comes to no ordinary end: the way back, answers that are lost, a session that ends while somebody types, and a proof by
// a passkey.

import { administration, base, call, setOptions } from '../api.mjs'
import { allowAuthenticators } from '../authenticator.mjs'
import { hold } from '../sign_in/cases.mjs'

const PASSWORD = 'four lively grey herons'
const customers = `${base}/console/Customer`

const named = async (name) =>
  (await call('GET', `/api/management/v2/Customer?filter=${encodeURIComponent(`name eq "${name}"`)}`, undefined, 200)).length

/** Makes another administrator, and signs in as them; the page and its context. */
export async function another(opened, loginName) {
  const person = { loginName, firstName: 'Grace', lastName: loginName, emailAddress: `${loginName}@example.com` }
  const user = await call('POST', `${administration}/User`, person, 201)
  await call('POST', `${administration}/User/${user.id}/password/reset`, { newPassword: PASSWORD }, 200)
  await call('POST', `${administration}/User/synchronize`, null, 200)
  const [found] = await call('GET', `/api/management/v2/ApplicationUser?filter=${encodeURIComponent(`emailAddress eq "${person.emailAddress}"`)}`, undefined, 200)
  await call('POST', '/api/management/v2/RoleAssignment', { principalType: 'PlatformUser', principalId: found.id, roleType: 'SystemAdmin' }, 201)
  const { context, page } = await opened({ fresh: true })
  return { context, page, person: found, loginName }
}

export async function signIn(page, loginName) {
  await page.fill('#username', loginName)
  await page.fill('#password', PASSWORD)
  await page.keyboard.press('Enter')
}

/** The way back leads to the list as it was; after signing out its address leads to the sign-in. */
async function wayBack(opened) {
  const { context, page, loginName } = await another(opened, 'back')
  await page.goto(`${base}/console/store/default/User?q=${loginName}`)
  await signIn(page, loginName)
  await page.locator('tbody th a').first().click()
  await page.waitForURL(/User\/[0-9a-f-]{36}/)
  await page.goBack()
  hold('back to the list', page.url().endsWith(`?q=${loginName}`) && (await page.locator('tbody th a').count()) === 1, page.url())
  await page.locator('details.self').evaluate((one) => { one.open = true })
  await page.click('form[action="/console/signout"] button')
  // it asks no second question
  await page.locator('form[action="/console/signout"]').waitFor({ state: 'detached' })
  await page.goto(`${base}/console/store/default/User?q=${loginName}`)
  hold('after signing out nobody is shown', (await page.locator('tbody, .places').count()) === 0, page.url())
  await context.close()
}

/** An answer that is lost on its way: the same form, sent again by a reload, finds what it made. */
async function lostAnswer(opened) {
  const { context, page } = await opened({})
  await page.goto(`${customers}/new`)
  await page.fill('#f-name', 'Lost answers')
  let said
  const isLost = new Promise((resolve) => { said = resolve })
  await page.route(`${customers}/new`, async (route) => {
    await route.fetch({ maxRedirects: 0 })
    await route.abort('connectionreset')
    said()
  }, { times: 1 })
  await page.keyboard.press('Control+s')
  await isLost
  hold('the server has done it', (await named('Lost answers')) === 1)
  // the navigation that fails may end this wait, too
  const told = () => page.waitForURL(/chrome-error/)
  await told().catch(told)
  await page.reload()
  await page.waitForURL(/Customer\/[0-9a-f-]{36}/)
  hold('sent again it finds what it made', (await named('Lost answers')) === 1)
  await context.close()
}

/** A session that ends while somebody types keeps the form in a page until the person has signed in again. */
async function endedWhileTyping(opened) {
  const { context, page, person, loginName } = await another(opened, 'typing')
  await page.goto(`${customers}/new`)
  await signIn(page, loginName)
  await page.waitForURL(`${customers}/new`)
  await page.fill('#f-name', 'Typed before the end')
  const filter = encodeURIComponent(`platformUserId eq "${person.id}"`)
  for (const session of await call('GET', `/api/management/v2/SignInSession?filter=${filter}`, undefined, 200)) {
    await call('DELETE', `/api/management/v2/SignInSession/${session.id}`, undefined, 204)
  }
  await page.keyboard.press('Control+s')
  const again = page.locator('a[href="/console/proof"]')
  await again.waitFor()
  const [tab] = await Promise.all([context.waitForEvent('page'), again.click()])
  await tab.locator('#username, #password').first().waitFor()
  await signIn(tab, loginName)
  await tab.waitForURL(`${base}/console/proven`)
  await page.click('form button')
  await page.waitForURL(/Customer\/[0-9a-f-]{36}/)
  hold('what was typed outlives the session', (await page.textContent('h1')).includes('Typed before the end'))
  await context.close()
}

/** Somebody makes a passkey at the sign-in, and proves by it what reaches far. */
async function byPasskey(opened) {
  const { context, page, loginName } = await another(opened, 'passkeys')
  const plugIn = await allowAuthenticators(page)
  const device = await plugIn()
  await setOptions({ PasskeyEnrolment: 'Offer' })
  try {
    await page.goto(`${base}/console`)
    await signIn(page, loginName)
    await page.getByRole('button', { name: 'Create a passkey' }).click()
    await page.waitForURL(`${base}/console`)
    hold('a passkey is made on the way in', (await device.credentials()).length === 1)
    // another one is not offered
    await setOptions({ PasskeyEnrolment: 'Off' })
    // the browser fills in the one that it has, and nobody has to press anything
    await page.goto(`${base}/console/proof`)
    await page.waitForURL(`${base}/console/proven`)
    hold('and proves who it is', true)
    await page.goto(`${base}/console/RoleAssignment/new`)
    hold('so that roles can be given', (await page.locator('form[data-edit]').count()) === 1)
  } finally {
    await setOptions({ PasskeyEnrolment: 'Off' })
  }
  await context.close()
}

/** The warning of the session's end stands two minutes before, counted from the last use: also from one by script. */
async function warned(opened) {
  const { context, page } = await opened({})
  await page.clock.install()
  await page.goto(`${base}/console/store/default/User`)
  const warning = page.locator('[data-ends]')
  const ends = Number(await warning.getAttribute('data-ends'))
  const isShown = async (seconds) => {
    await page.clock.fastForward(seconds * 1000)
    return warning.isVisible()
  }
  const early = await isShown(ends - 180)
  const answer = page.waitForResponse(/q=nobody/)
  await page.fill('input[type=search]', 'nobody')
  await page.clock.runFor(500)
  await answer
  await page.locator('.empty').waitFor()
  const used = await isShown(120)
  hold('what script fetches is a use of the session', !early && !used, `${early}, ${used}`)
  hold('its end is told two minutes before', await isShown(ends - 120))
  await context.close()
}

/** All of them. */
export async function endings(opened) {
  await warned(opened)
  await wayBack(opened)
  await lostAnswer(opened)
  await endedWhileTyping(opened)
  await byPasskey(opened)
}

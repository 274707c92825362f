// The console in a real browser: from the link of the first start to a user who is found, locked and unlocked, and every
// page under axe, in both languages and colour schemes, at three widths, with and without script.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_SETUP=/console/setup/... CHANCERY_TOKEN=... node console.mjs
//
// The server is new: its first administrator is made here. PICTURES names a folder for pictures of the main pages, and ONLY
// the parts that are run, for who works on one. HALF=pages runs what looks at every page, and HALF=tasks all other parts: two
// such checks run beside each other.

import { base, call, setOptions } from './api.mjs'
import { allowAuthenticators } from './authenticator.mjs'
import { launch } from './chromium.mjs'
import { configuration } from './console/configuration.mjs'
import { editor } from './console/editor.mjs'
import { endings } from './console/endings.mjs'
import { oneself } from './console/oneself.mjs'
import { journeys } from './console/journeys.mjs'
import { Hands, keyboard } from './console/keyboard.mjs'
import { narrow } from './console/narrow.mjs'
import { everyPage, media } from './console/pages.mjs'
import { providerConnected, providerTried } from './console/provider.mjs'
import { records } from './console/records.mjs'
import { trail } from './console/trail.mjs'
import { hold } from './sign_in/cases.mjs'
import { underAxe } from './sign_in/look.mjs'

const PASSWORD = 'four lively grey herons'
const people = '/api/userstore/v2/default/administration/User'

const NEIGHBOURS = [['ada', 'Ada', 'Lovelace'], ['alan', 'Alan', 'Turing'], ['barbara', 'Barbara', 'Liskov'],
  ['edsger', 'Edsger', 'Dijkstra'], ['emmy', 'Emmy', 'Noether'], ['katherine', 'Katherine', 'Johnson'],
  ['konrad', 'Konrad', 'Zuse'], ['mary', 'Mary', 'Jackson']]
/** The parts of HALF=pages: they look at all pages, and make what pages show. The other half needs the people of the first, too. */
const PAGES = ['helpDesk', 'appsAndSettings', 'groupsWithin', 'providerTried', 'providerConnected', 'journeys', 'media', 'everyPage']

/** Opens a page in a context of its own; what the browser complains of is kept. */
async function opened(browser, { lang = 'en', theme = 'light', width = 1440, height = 900, script = true, touch = false } = {}, state) {
  const context = await browser.newContext({
    storageState: state, locale: lang, colorScheme: theme, viewport: { width, height }, reducedMotion: 'reduce',
    javaScriptEnabled: script, hasTouch: touch, isMobile: touch,
  })
  const page = await context.newPage()
  const complaints = []
  // a page that is not there says so in the browser's own words, too
  const isUsual = (text) => /Failed to load resource|Autofocus processing was blocked|Blocked autofocusing/.test(text)
  page.on('console', (one) => isUsual(one.text()) || complaints.push(one.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  return { context, page, complaints }
}

async function picture(page, name) {
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${name}.png` })
}

/** The first administrator comes in by the link, and signs in: by the keyboard alone. */
async function firstAdministrator(browser) {
  const { context, page, complaints } = await opened(browser)
  await page.goto(base + process.env.CHANCERY_SETUP)
  await underAxe(page, 'the first page')
  await picture(page, 'setup')
  const typed = { firstName: 'Margaret', lastName: 'Hamilton', emailAddress: 'mh@example.com', loginName: 'margaret', password: 'short', repeated: 'short' }
  const hands = new Hands(page, true)
  for (const [name, text] of Object.entries(typed)) await hands.type(`#f-${name}`, text)
  await hands.leave()
  hold('a weak password is refused at its place', await page.locator('#f-password[aria-invalid=true]').count() === 1)
  hold('what was typed stays', await page.inputValue('#f-loginName') === 'margaret')
  for (const name of ['password', 'repeated']) await hands.type(`#f-${name}`, PASSWORD)
  await hands.leave()
  await hands.type('#username', 'margaret')
  await hands.type('#password', PASSWORD)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/console/welcome`)
  hold('from the first start to the wizard', await page.locator('.checks .good').count() > 0)
  await secondAdministrator(browser, page)
  await page.goto(`${base}/console`)
  hold('and to the console', (await page.textContent('h1')).includes('Margaret'))
  hold('nothing is complained of on the way', complaints.length === 0, complaints.join('; '))
  const state = await context.storageState()
  await context.close()
  return state
}

/** The wizard makes a second administrator without a password, who comes in by an access pass and makes a passkey. */
async function secondAdministrator(browser, page) {
  await page.goto(`${base}/console/welcome?step=second`)
  const hands = new Hands(page, true)
  const typed = { firstName: 'Dorothy', lastName: 'Vaughan', emailAddress: 'dv@example.com', loginName: 'dorothy' }
  for (const [name, text] of Object.entries(typed)) await hands.type(`#f-${name}`, text)
  await hands.reach('#f-way')
  await page.keyboard.press('End')
  hold('who gets a passkey is not asked for a password', !(await page.locator('#f-password').isVisible()))
  await hands.save()
  const pass = (await page.locator('.facts code').last().textContent()).trim()
  await underAxe(page, 'the access pass')
  const { context, page: theirs } = await opened(browser)
  const device = await (await allowAuthenticators(theirs))()
  await theirs.goto(`${base}/console/welcome`)
  await theirs.getByRole('link', { name: 'access pass' }).click()
  await theirs.fill('#username', typed.loginName)
  await theirs.fill('#pass', pass)
  await theirs.keyboard.press('Enter')
  await theirs.getByRole('button', { name: 'Create a passkey' }).click()
  await theirs.waitForURL(`${base}/console/welcome`)
  hold('and comes in by a passkey of their own', (await device.credentials()).length === 1)
  await context.close()
}

/** A user is made, found, locked by somebody else, seen and unlocked; the trail has it. */
async function helpDesk(browser, state) {
  const { context, page, complaints } = await opened(browser, {}, state)
  for (const [loginName, firstName, lastName] of NEIGHBOURS) {
    await call('POST', people, { loginName, firstName, lastName, emailAddress: `${loginName}@example.com`, emailAddressConfirmed: true }, 201)
  }
  await page.goto(`${base}/console/store/default/User`)
  await picture(page, 'users')
  await page.keyboard.press('n')
  await page.waitForURL('**/User/new')
  hold('N makes a new one', true)
  await page.fill('#f-loginName', 'ada')
  await page.keyboard.press('Tab')
  await page.locator('#f-loginName-wrong').waitFor()
  hold('a name that is taken is told before it is sent', await page.locator('#f-loginName[aria-invalid=true]').count() === 1)
  await page.fill('#f-loginName', 'grace')
  await page.keyboard.press('Tab')
  await page.locator('#f-loginName-wrong').waitFor({ state: 'detached' })
  await page.fill('#f-firstName', 'Grace')
  await page.fill('#f-lastName', 'Hopper')
  await page.keyboard.press('Control+s')
  await page.waitForURL(/User\/[0-9a-f-]{36}/)
  hold('Ctrl S saves', (await page.textContent('h1')).includes('Grace Hopper'))
  const [grace] = await call('GET', `${people}?filter=${encodeURIComponent('loginName eq "grace"')}`, undefined, 200)
  await call('POST', `${people}/${grace.id}/state`, { isUserLocked: true }, 200)
  await page.goto(`${base}/console`)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('grace')
  const found = page.locator('#found [role=option]', { hasText: 'Grace Hopper' })
  await found.waitFor()
  await picture(page, 'find')
  await page.keyboard.press('Enter')
  await page.waitForURL(/User\/[0-9a-f-]{36}/)
  hold('one box finds a person', (await page.textContent('h1')).includes('Locked'))
  await page.goto(`${page.url().split('?')[0]}/SetUserState`)
  await page.selectOption('#f-isUserLocked', 'false')
  await page.clock.install()
  await page.click('button.main')
  await page.waitForURL(/done=/)
  hold('unlocked', (await page.textContent('h1')).includes('Active'))
  await page.locator('.after .timeline li').first().waitFor()
  hold('what was changed comes after the page', (await page.textContent('.after .timeline')).includes('root'))
  hold('readers hear when, in full', /now.*, .*\d{4}/.test(await page.locator('.after .timeline time').first().textContent()))
  await picture(page, 'user')
  const note = page.locator('.note:not([data-ends])'), isShown = await note.isVisible()
  await page.clock.fastForward(60_000)
  await note.waitFor({ state: 'detached' })
  hold('an address that is mailed tells of nothing that was done', isShown && !page.url().includes('done='))
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.waitForURL('**/CustomAuditTrail')
  hold('the trail has it', (await page.locator('tbody tr').count()) > 2)
  await picture(page, 'trail')
  hold('no page complains', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** A client app is registered by what it is, and a setting is changed and taken back. */
async function appsAndSettings(browser, state) {
  const { context, page, complaints } = await opened(browser, {}, state)
  await page.goto(`${base}/console/ClientApp`)
  await page.keyboard.press('n')
  await page.click('text=Web app')
  await page.fill('#f-name', 'Staff portal')
  await page.fill('#f-returns', 'https://portal.example/callback')
  await page.keyboard.press('Control+s')
  await page.waitForSelector('text=Client secret')
  const code = await page.textContent('main')
  hold('registered, with code filled in', code.includes('https://portal.example/callback') && code.includes('openid-client'))
  await underAxe(page, 'what was registered')
  await picture(page, 'registered')
  const [instance] = await call('GET', '/api/management/v2/IdpInstance', undefined, 200)
  await page.goto(`${base}/console/IdpInstance/${instance.id}`)
  await page.click('.acts a[href$="/settings"]')
  await page.fill('#f-TemporaryLockDuration', '2')
  await page.selectOption('select[name="TemporaryLockDuration.unit"]', 'hours')
  await picture(page, 'settings')
  await page.keyboard.press('Control+s')
  await page.waitForURL(/done=saved/)
  hold('a length of time in words', (await page.textContent('#f-TemporaryLockDuration-hint')).includes('Changed. Default: 5 minutes'))
  await underAxe(page, 'the settings')
  await page.click('.note form button')
  await page.waitForFunction(() => document.querySelector('#f-TemporaryLockDuration')?.value === '5')
  hold('taken back', !(await page.textContent('#f-TemporaryLockDuration-hint')).includes('Changed'))
  hold('no page complains of apps and settings', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** Many rows are chosen by keys, told in numbers, changed at once, and put back. */
async function manyAtOnce(browser, state) {
  const { context, page, complaints } = await opened(browser, {}, state)
  await page.goto(`${base}/console/store/default/User`)
  for (const key of ['j', 'j', 'x', 'j', 'j', 'j', 'Shift+X']) await page.keyboard.press(key)
  hold('X and Shift X choose a range', (await page.locator('tbody .pick :checked').count()) === 4)
  await page.click('button[value=deactivate]')
  await page.waitForURL('**/User/batch')
  hold('numbers come first', (await page.textContent('h1')).includes('4'))
  await page.click('.finish button.main')
  await page.waitForURL(/done=done/)
  await page.goto(`${page.url().split('?')[0]}?view=inactive`)
  hold('done at once', (await page.locator('tbody tr').count()) === 4)
  await page.locator('tbody .pick input').first().check()
  await page.locator('input[name=all]').check()
  await page.click('button[value=activate]')
  await page.waitForURL('**/User/batch')
  await page.click('.finish button.main')
  await page.waitForURL(/done=done/)
  hold('all that match, back again', (await page.locator('tbody tr').count()) === 0)
  hold('no page complains of many', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** Members by names, the tree step by step, and a circle that is refused with its way. */
async function groupsWithin(browser, state) {
  const { context, page, complaints } = await opened(browser, {}, state)
  const groups = '/api/userstore/v2/default/administration/Group'
  const [outer, middle, inner] = await call('POST', `${groups}/batch`, ['Everybody', 'Makers', 'Coders'].map((name) => ({ name })), 200)
  await call('POST', `${groups}/${outer.id}/membergroups`, { relatedIds: [middle.id] }, 202)
  await call('POST', `${groups}/${middle.id}/membergroups`, { relatedIds: [inner.id] }, 202)
  await page.goto(`${base}/console/store/default/Group/${outer.id}`)
  await page.click('.acts a[href$="/members"]')
  await page.fill('#f-names', 'ada\nAlan Turing <alan@example.com>\nnobody\nADA')
  await page.click('.bar .main')
  const told = await page.textContent('.plainly')
  hold('names are told before', told.includes('2 to be added: Ada Lovelace, Alan Turing') && told.includes('1 unknown: nobody'), told)
  await page.click('.finish .main')
  await page.waitForURL(/memberOfGroups/)
  hold('members by names', (await page.locator('tbody tr').count()) === 2)
  await page.goto(`${base}/console/store/default/Group/${outer.id}/tree`)
  await page.click('#down-0 > .button')
  await page.waitForSelector('#down-0-0')
  await underAxe(page, 'the tree')
  await picture(page, 'tree')
  await page.goto(`${base}/console/store/default/Group/${inner.id}/relation/memberGroups`)
  await page.fill('[role=combobox]#f-id', 'Everybody')
  await page.locator('[role=option]').first().click()
  await page.click('.joined .main')
  await page.waitForSelector('.plainly li')
  hold('a circle with its way', (await page.textContent('.plainly')).includes('Coders is in Makers'))
  hold('no page complains of groups', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** A thousand people from a file, or ten thousand where WHOLE is set: three wrong cells are found, mended, and all imported at once. */
async function importPeople(browser, state) {
  const { context, page, complaints } = await opened(browser, {}, state)
  const [count, middle, last] = process.env.WHOLE ? [10000, 5000, 9999] : [1000, 500, 999]
  const wrong = { 17: 'no address', [middle]: 'none', [last]: '@' }
  const file = (mended) => {
    const rows = Array.from({ length: count }, (_, i) => `crew${i};Crew;Number ${i};${(!mended && wrong[i]) || `crew${i}@example.com`}`)
    return { name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(`Anmeldename;Vorname;Nachname;E-Mail\n${rows.join('\n')}\n`) }
  }
  await page.goto(`${base}/console/store/default/User`)
  await page.click('.acts a[href$="/User/import"]')
  await page.setInputFiles('#f-file', file(false))
  await page.waitForFunction((name) => document.querySelector('#f-text').value.includes(name), `crew${last}`)
  await page.click('[data-check]')
  await page.waitForSelector('.sheet tbody tr')
  const lines = await page.locator('.sheet tbody th').allTextContents()
  hold(`three wrong cells of ${count} people`, lines.map((line) => line.match(/\d+/)[0]).join() === `19,${middle + 2},${last + 2}`, lines.join())
  await underAxe(page, 'what was found')
  await picture(page, 'import')
  await page.setInputFiles('#f-file', file(true))
  await page.waitForFunction(() => !document.querySelector('#f-text').value.includes('no address'))
  await page.click('[data-check]')
  await page.click('button[name=sure]')
  await page.waitForURL(/done=imported/)
  await page.goto(`${base}/console/store/default/User?q=crew${last}`)
  hold('imported', (await page.locator('tbody tr').count()) === 1)
  hold('no page complains of the import', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** The same without script: searching, going on, saving, refusals. */
async function withoutScript(browser, state) {
  const { context, page } = await opened(browser, { script: false }, state)
  await page.goto(`${base}/console/store/default/User`)
  await page.fill('input[name=q]', 'gra')
  await page.keyboard.press('Enter')
  await page.waitForURL('**q=gra*')
  hold('a search without script', (await page.locator('tbody tr').count()) === 1)
  await page.locator('tbody th a').first().click()
  await page.fill('#f-nickname', 'Amazing')
  await page.click('.bar button.main')
  hold('saved without script', (await page.inputValue('#f-nickname')) === 'Amazing' && page.url().includes('done=saved'))
  await page.fill('#f-loginName', '')
  await page.click('.bar button.main')
  hold('a refusal without script', (await page.locator('[role=alert] a[href="#f-loginName"]').count()) === 1)
  await context.close()
}

/** Chooses how pages look, by the form that everybody has. */
async function prefer(page, { lang, theme }) {
  await page.goto(`${base}/console`)
  await page.evaluate(() => document.querySelector('#navigation')?.removeAttribute('popover'))
  await page.locator('details.self').evaluate((one) => { one.open = true })
  await page.locator('#me-theme').evaluate((one, value) => { one.value = value }, theme)
  await page.locator('#me-lang').evaluate((one, value) => { one.value = value }, lang)
  await Promise.all([page.waitForNavigation(), page.locator('form[action="/console/me"]').evaluate((one) => one.submit())])
}

/** Signs the administrator in again, as the console asks before critical operations; returns the new state. */
async function provenAgain(browser, state) {
  const { context, page } = await opened(browser, {}, state)
  await page.goto(`${base}/console/proof`)
  await page.fill('#username', 'margaret')
  await page.fill('#password', PASSWORD)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/console/proven`)
  const renewed = await context.storageState()
  await context.close()
  return renewed
}

const browser = await launch()
try {
  await setOptions({ PasskeyEnrolment: 'Off' })
  let state = await firstAdministrator(browser)
  let proven = Date.now()
  // critical operations require a proof of the last ten minutes, and a slow machine takes longer for all parts
  const renew = async () => {
    if (Date.now() - proven > 3 * 60_000) {
      state = await provenAgain(browser, state)
      proven = Date.now()
    }
  }
  const open = async (how) => {
    await renew()
    return opened(browser, how, how.fresh ? undefined : state)
  }
  const trial = []
  const parts = {
    helpDesk: () => helpDesk(browser, state),
    appsAndSettings: () => appsAndSettings(browser, state),
    manyAtOnce: () => manyAtOnce(browser, state),
    groupsWithin: () => groupsWithin(browser, state),
    withoutScript: () => withoutScript(browser, state),
    providerTried: async () => { trial.push(await providerTried(open)) },
    providerConnected: async () => { trial.push(...await providerConnected(open, picture)) },
    keyboard: () => keyboard(open, prefer),
    trail: () => trail(open),
    oneself: () => oneself(open),
    narrow: () => narrow(open),
    editor: () => editor(open, picture),
    journeys: () => journeys(open),
    configuration: () => configuration(open, picture),
    endings: () => endings(open),
    media: () => media(open),
    everyPage: async () => everyPage(open, prefer, [...await records(), ...trial]),
    importPeople: () => importPeople(browser, state),
  }
  const { ONLY, HALF } = process.env, only = ONLY?.split(',')
  const isOfHalf = (name) => !HALF || name === 'helpDesk' || PAGES.includes(name) === (HALF === 'pages')
  for (const [name, run] of Object.entries(parts)) {
    await renew()
    if (!(only?.includes(name) ?? isOfHalf(name))) continue
    const begun = Date.now()
    await run()
    console.log(`part    ${name}: ${Math.round((Date.now() - begun) / 1000)} s`)
  }
} finally {
  await browser.close()
}

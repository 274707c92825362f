// The console in a real browser: from the link of the first start to a user who is found, locked and unlocked, and every
// page under axe, in both languages and colour schemes, at three widths, with and without script.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_SETUP=/console/setup/... CHANCERY_TOKEN=... node console.mjs
//
// The server is new: its first administrator is made here. PICTURES names a folder for pictures of the main pages.

import { base, call, setOptions } from './api.mjs'
import { launch } from './chromium.mjs'
import { hold } from './sign_in/cases.mjs'
import { violations } from './sign_in/look.mjs'

const PASSWORD = 'four lively grey herons'
const people = '/api/userstore/v2/default/administration/User'

/** How pages are looked at: language, colours, width, script. */
const LOOKS = [
  { lang: 'en', theme: 'light', width: 1440, script: true },
  { lang: 'de', theme: 'dark', width: 320, script: true },
  { lang: 'de', theme: 'light', width: 768, script: false },
]
const NEIGHBOURS = [['ada', 'Ada', 'Lovelace'], ['alan', 'Alan', 'Turing'], ['barbara', 'Barbara', 'Liskov'],
  ['edsger', 'Edsger', 'Dijkstra'], ['emmy', 'Emmy', 'Noether'], ['katherine', 'Katherine', 'Johnson'],
  ['konrad', 'Konrad', 'Zuse'], ['mary', 'Mary', 'Jackson']]
/** Pages that no link of another one leads to. */
const MORE = ['/console/store/default/User/new', '/console/Tenant/new', '/console/ClientApp/new', '/console/find?q=a',
  '/console/store/default/User?q=nobody', '/console/nowhere']

/** Runs in the page: what does not fit its width, and what is wrong with its structure. */
function faults() {
  const found = []
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth > clientWidth) found.push(`it is ${scrollWidth} wide of ${clientWidth}`)
  for (const one of ['h1', 'main', 'title']) {
    const count = document.querySelectorAll(one).length
    if (count !== 1) found.push(`${count} of ${one}`)
  }
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id)
  if (new Set(ids).size !== ids.length) found.push(`an id is there twice: ${ids.filter((id, at) => ids.indexOf(id) !== at)}`)
  return found
}

/** Opens a page in a context of its own; what the browser complains of is kept. */
async function opened(browser, { lang = 'en', theme = 'light', width = 1440, script = true } = {}, state) {
  const context = await browser.newContext({
    storageState: state, locale: lang, colorScheme: theme, viewport: { width, height: 900 }, reducedMotion: 'reduce',
    javaScriptEnabled: script,
  })
  const page = await context.newPage()
  const complaints = []
  // a page that is not there says so in the browser's own words, too
  const isUsual = (text) => /Failed to load resource|Autofocus processing was blocked/.test(text)
  page.on('console', (one) => isUsual(one.text()) || complaints.push(one.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  return { context, page, complaints }
}

async function picture(page, name) {
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${name}.png` })
}

/** The first administrator comes in by the link, and signs in. */
async function firstAdministrator(browser) {
  const { context, page, complaints } = await opened(browser)
  await page.goto(base + process.env.CHANCERY_SETUP)
  hold('the first page, under axe', (await violations(page)).length === 0, (await violations(page)).join('; '))
  await picture(page, 'setup')
  const typed = { firstName: 'Margaret', lastName: 'Hamilton', emailAddress: 'mh@example.com', loginName: 'margaret', password: 'short', repeated: 'short' }
  for (const [name, text] of Object.entries(typed)) await page.fill(`#f-${name}`, text)
  await page.click('button.main')
  hold('a weak password is refused at its place', await page.locator('#f-password[aria-invalid=true]').count() === 1)
  hold('what was typed stays', await page.inputValue('#f-loginName') === 'margaret')
  for (const name of ['password', 'repeated']) await page.fill(`#f-${name}`, PASSWORD)
  await page.click('button.main')
  await page.fill('#username', 'margaret')
  await page.fill('#password', PASSWORD)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/console`)
  hold('from the first start to the console', (await page.textContent('h1')).includes('Margaret'))
  hold('nothing is complained of on the way', complaints.length === 0, complaints.join('; '))
  const state = await context.storageState()
  await context.close()
  return state
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
  await page.fill('#f-loginName', 'grace')
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
  await page.click('button.main')
  await page.waitForURL(/done=/)
  hold('unlocked', (await page.textContent('h1')).includes('Active'))
  await picture(page, 'user')
  await page.goto(`${base}/console/store/default/CustomAuditTrail`)
  hold('the trail has it', (await page.locator('tbody tr').count()) > 2)
  await picture(page, 'trail')
  hold('no page complains', complaints.length === 0, complaints.join('; '))
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

/** Every page that links lead to, in each look. */
async function everyPage(browser, state) {
  const first = await opened(browser, {}, state)
  await first.page.goto(`${base}/console`)
  const links = await first.page.locator('nav.side a[href^="/console"]').evaluateAll((all) => all.map((one) => one.getAttribute('href')))
  const items = []
  for (const link of links) {
    await first.page.goto(base + link)
    const row = first.page.locator('tbody th a').first()
    if (await row.count()) items.push(await row.getAttribute('href'))
  }
  await first.context.close()
  const paths = [...new Set([...links, ...items, ...MORE])].filter((path) => !path.includes('#'))
  hold(`${paths.length} pages are there`, paths.length > 30)
  for (const look of LOOKS) {
    const { context, page, complaints } = await opened(browser, look, state)
    await prefer(page, look)
    const wrong = []
    for (const path of paths) {
      await page.goto(base + path)
      const found = [...(await page.evaluate(faults)), ...(look.script ? await violations(page) : [])]
      if (found.length > 0) wrong.push(`${path}: ${found.join('; ')}`)
    }
    const how = `${look.lang}, ${look.theme}, ${look.width}, ${look.script ? 'with' : 'without'} script`
    hold(`${paths.length} pages: ${how}`, wrong.length === 0, wrong.join('\n        '))
    hold(`no page complains: ${how}`, complaints.length === 0, complaints.slice(0, 5).join('; '))
    await context.close()
  }
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

const browser = await launch()
try {
  await setOptions({ PasskeyEnrolment: 'Off' })
  const state = await firstAdministrator(browser)
  await helpDesk(browser, state)
  await withoutScript(browser, state)
  await everyPage(browser, state)
} finally {
  await browser.close()
}

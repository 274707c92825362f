// The journeys of the help desk and of who registers apps, by the keyboard alone: in both languages, with and without script.

import { administration, base, call, setOptions } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'

const isWhole = Boolean(process.env.WHOLE)
/** The last one leaves the administrator with the language that other checks read. */
const WALKS = [
  { lang: 'de', script: false }, { lang: 'en', script: true },
  ...(isWhole ? [{ lang: 'de', script: true }, { lang: 'en', script: false }] : []),
]
const PASSWORD = 'seven quiet brown otters'

/** Runs in the page: whether what has the focus is what is looked for, and whether that is seen; or the link past the navigation, where
 * what is looked for comes after it. */
function focused(selector) {
  const one = document.activeElement
  if (one?.matches('a.skip') && document.querySelector(one.hash)?.querySelector(selector)) return { isSkipLink: true }
  if (!one?.matches(selector)) return null
  one.scrollIntoView({ block: 'nearest' })
  const { width, height, top, bottom } = one.getBoundingClientRect()
  // what hides itself shows the focus on what stands for it, as a label does for its box
  const shows = (shown) => {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(shown)
    return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0 && outlineColor !== 'rgba(0, 0, 0, 0)'
  }
  const isMarked = shows(one) || [...(one.labels ?? []), one.parentElement].some((other) => other && shows(other))
  return { isSeen: width > 0 && height > 0 && bottom > 0 && top < innerHeight && isMarked }
}

/** Somebody with a keyboard in front of a page. */
export class Hands {
  constructor(page, script) {
    Object.assign(this, { page, script, keyboard: page.keyboard })
  }

  /** Presses Tab until something has the focus, and goes past the navigation by its link. */
  async reach(selector) {
    for (let pressed = 0; pressed < 250; pressed++) {
      const found = await this.page.evaluate(focused, selector)
      if (found && !found.isSkipLink && !found.isSeen) throw new Error(`the focus is not seen at ${selector}`)
      if (found?.isSeen) return
      await this.keyboard.press(found?.isSkipLink ? 'Enter' : 'Tab')
    }
    throw new Error(`the keyboard does not reach ${selector} on ${this.page.url()}`)
  }

  /** Presses a key that leads to another page. */
  async leave(key = 'Enter') {
    const left = this.page.waitForEvent('framenavigated')
    await this.keyboard.press(key)
    await left
    await this.page.waitForLoadState()
  }

  /** Reaches something and presses it, which leads to another page. */
  async go(selector, key) {
    await this.reach(selector)
    await this.leave(key)
  }

  /** Types into a field, in place of what is there. */
  async type(selector, text) {
    await this.reach(selector)
    await this.keyboard.press('Control+a')
    await this.keyboard.insertText(text)
  }

  /** Chooses a row by a search, or by its id where there is no script. */
  async choose(selector, { name, id }) {
    if (!this.script) return this.type(selector, id)
    await this.reach(selector)
    await this.keyboard.type(name)
    // at once, too: the id is there when the answer to the whole name is
    await this.keyboard.press('Enter')
    await this.page.waitForFunction((field) => document.querySelector(field).previousElementSibling.value, selector)
  }

  /** Opens a place of the navigation. */
  place(name) {
    return this.go(`.places a[href$="/${name}"]`)
  }

  /** Opens the page of an act, which may be folded away. */
  async act(name) {
    const link = `.acts a[href$="/${name}"]`
    if (await this.page.locator(`details.more ${link.slice(6)}`).count()) {
      await this.reach('details.more > summary')
      await this.keyboard.press('Enter')
    }
    await this.go(link)
  }

  /** Saves a form: by its key, or by its button where there is no script. */
  save(button = '.bar .main') {
    return this.script && button === '.bar .main' ? this.leave('Control+s') : this.go(button)
  }

  /** Whether the page says that something was done. */
  async noted() {
    return (await this.page.locator('.note:not([data-ends]) output').count()) > 0
  }

  text() {
    return this.page.textContent('main')
  }
}

/** Each journey: its number and name, and what is done; it answers whether it came to its end. */
const JOURNEYS = [
  ['2 find anybody', async (hands, { user }) => {
    if (hands.script) {
      await hands.keyboard.press('Control+k')
      await hands.keyboard.type(user.loginName)
      // at once: Enter waits for the answer to all that was typed
      await hands.leave()
    } else {
      await hands.go('a.finder')
      await hands.type('main input[name=q]', user.loginName)
      await hands.leave()
      await hands.go('.found a[href*="/User/"]')
    }
    return hands.page.url().includes(user.id)
  }],
  ['3 and 4 why she cannot sign in, and unlock', async (hands, { user }) => {
    await call('POST', `${administration}/User/${user.id}/state`, { isUserLocked: true }, 200)
    await hands.page.reload()
    await hands.go('aside li.bad a[href$="/SetUserState"]')
    await hands.reach('#f-isUserLocked')
    await hands.keyboard.press('End')
    await hands.save()
    return (await hands.page.locator('aside li.bad a[href$="/SetUserState"]').count()) === 0
  }],
  ['5 a password', async (hands) => {
    await hands.act('SetInitialPassword')
    const fields = await hands.page.locator('form[data-edit] input[type=password]').evaluateAll((all) => all.map((one) => one.id))
    for (const id of fields) await hands.type(`#${id}`, PASSWORD)
    await hands.save()
    return fields.length > 0 && (await hands.noted())
  }],
  ['5 an access pass', async (hands, { user }) => {
    await hands.page.goto(user.page)
    const link = 'a[href*="TemporaryAccessPass/new?userId="]'
    if (await hands.page.locator(`details.more ${link}`).count()) {
      await hands.reach('details.more > summary')
      await hands.keyboard.press('Enter')
    }
    await hands.go(link)
    await hands.save()
    const told = await hands.page.textContent('main')
    await hands.page.goto(user.page)
    return /[A-Z2-9]{8,}/.test(told)
  }],
  ['7 edit with care', async (hands, { user }) => {
    await hands.type('#f-nickname', 'Quick')
    await hands.go('button[name=review]')
    const told = await hands.text()
    await hands.go('.finish .main')
    return told.includes('Quick') && (await hands.page.inputValue('#f-nickname')) === 'Quick' && hands.page.url().includes(user.id)
  }],
  ['8 two at once', async (hands, { user }) => {
    await hands.type('#f-nickname', 'Mine')
    const now = await call('GET', `${administration}/User/${user.id}`, undefined, 200)
    await call('PATCH', `${administration}/User/${user.id}`, { nickname: 'Theirs', concurrencyToken: now.concurrencyToken }, 202)
    await hands.save()
    await hands.reach('input[name=nickname]')
    const yours = () => hands.page.locator('input[name=nickname][value=yours]').isChecked()
    for (let pressed = 0; pressed < 2 && !(await yours()); pressed++) await hands.keyboard.press('ArrowRight')
    await hands.go('.merge .finish .main')
    return (await hands.page.inputValue('#f-nickname')) === 'Mine'
  }],
  ['10 lost authenticator', async (hands, { user }) => {
    await hands.go('aside a[href*="/recovery/new?user="]')
    const fields = await hands.page.locator('form[data-edit] :is(input[type=text], textarea):not([role=combobox]):not([name=userId])').evaluateAll((all) => all.map((one) => one.id))
    for (const id of fields) await hands.type(`#${id}`, 'Called back, and knew the answer')
    await hands.save()
    return /recovery\/[0-9a-f-]{36}/.test(hands.page.url()) && (await hands.text()).includes(user.lastName)
  }],
  ['6 a new one', async (hands, { name }) => {
    await hands.place('User')
    if (hands.script) await hands.leave('n')
    else await hands.go('a[data-new]')
    await hands.type('#f-loginName', `${name}-new`)
    await hands.type('#f-lastName', 'Newcomer')
    await hands.save()
    return /User\/[0-9a-f-]{36}/.test(hands.page.url()) && (await hands.text()).includes('Newcomer')
  }],
  ['14 delete', async (hands, { name }) => {
    await hands.act('delete')
    await hands.go('.finish .main')
    const left = await call('GET', `${administration}/User?filter=${encodeURIComponent(`loginName eq "${name}-new"`)}`, undefined, 200)
    return left.length === 0
  }],
  ['14 restore, and erase', async (hands, { name }) => {
    const newcomer = async () => {
      await hands.page.goto(`${base}/console/store/default/User?view=deleted&q=${name}-new`)
      await hands.go('tbody th a')
    }
    await newcomer()
    await hands.act('RestoreUserDeletionQuarantine')
    await hands.save()
    const filter = encodeURIComponent(`loginName eq "${name}-new"`)
    const back = await call('GET', `${administration}/User?filter=${filter}`, undefined, 200)
    await call('DELETE', `${administration}/User/${back[0].id}`, undefined, 204)
    await newcomer()
    await hands.act('EraseUser')
    await hands.type('#typed', (await hands.page.textContent('.expected')).trim())
    await hands.go('.finish .main')
    const left = await call('GET', `${administration}/User?quarantined=true&filter=${filter}`, undefined, 200)
    return back.length === 1 && left.length === 0
  }],
  ['1 the wizard', async (hands) => {
    await hands.page.goto(`${base}/console/welcome?step=mail`)
    await hands.go('.acts a[href$="/settings"]')
    await hands.type('#f-EMailSenderAddress', 'id@example.com')
    await hands.save()
    const isKept = await hands.noted()
    await hands.page.goto(`${base}/console/welcome?step=address`)
    const steps = []
    while (hands.page.url().includes('/welcome') && steps.length < 9) {
      steps.push(await hands.page.textContent('h1'))
      await hands.go('.head .acts > a:last-of-type')
    }
    return isKept && steps.length === 5 && new URL(hands.page.url()).pathname === '/console'
  }],
  ['9 passkey readiness', async (hands) => {
    await hands.place('readiness')
    await hands.go('main a[href*="reason="]')
    return hands.page.url().includes('reason=')
  }],
  ['11 groups within groups', async (hands, { outer, inner }) => {
    await hands.place('Group')
    await hands.go(`a[href$="/Group/${outer.id}"]`)
    await hands.go('aside a[href$="/relation/memberGroups"]')
    await hands.choose('#f-id', inner)
    await hands.go('.joined .main')
    await hands.page.locator('tbody', { hasText: inner.name }).waitFor()
    return true
  }],
  ['12 import people', async (hands, { name }) => {
    await hands.place('User')
    await hands.go('.acts a[href$="/import"]')
    await hands.type('#f-text', `loginName;lastName\n${name}-a;Imported\n${name}-b;Imported\n`)
    await hands.go('button[data-check]')
    await hands.go('button[name=sure]')
    return hands.noted()
  }],
  ['13 many at once', async (hands, { name }) => {
    await hands.go('.places a[href$="/User"]')
    await hands.type('.search input[name=q]', `${name}-`)
    if (hands.script) await hands.page.locator('tbody tr').nth(2).waitFor({ state: 'detached' })
    else await hands.leave()
    await hands.reach('tbody .pick input')
    await hands.keyboard.press('Space')
    await hands.go('button[value=deactivate]')
    await hands.go('.finish .main')
    return hands.noted()
  }],
  ['24 a tenant with its providers and settings', async (hands, { name }) => {
    await hands.place('Tenant')
    if (hands.script) await hands.leave('n')
    else await hands.go('a[data-new]')
    await hands.type('#f-name', `Tenant of ${name}`)
    await hands.reach('input[type=checkbox][name^="instance:"]')
    await hands.keyboard.press('Space')
    await hands.save()
    const made = await call('GET', `/api/management/v2/Tenant?filter=${encodeURIComponent(`name eq "Tenant of ${name}"`)}`, undefined, 200)
    return made.length === 1 && made[0].idpInstances.length === 1
  }],
  ['15 register an app', async (hands, { name }) => {
    await hands.place('ClientApp')
    if (hands.script) await hands.leave('n')
    else await hands.go('a[data-new]')
    await hands.go('.kinds a[href$="kind=web"]')
    await hands.type('#f-name', `App of ${name}`)
    await hands.type('#f-returns', 'https://portal.example/callback')
    await hands.save()
    return (await hands.text()).includes('https://portal.example/callback')
  }],
]

/** Who and what a walk is about. */
async function scene({ lang, script }) {
  const name = `keys-${lang}-${script ? 'with' : 'without'}`
  const body = { loginName: name, firstName: 'Key', lastName: `Board-${lang}${script ? 1 : 0}`, emailAddress: `${name}@example.com` }
  const user = await call('POST', `${administration}/User`, body, 201)
  const groups = await call('POST', `${administration}/Group/batch`, ['Outer', 'Inner'].map((one) => ({ name: `${one} of ${name}` })), 200)
  user.page = `${base}/console/store/default/User/${user.id}`
  return { name, user, outer: groups[0], inner: groups[1] }
}

/** What single keys do, and that they do nothing in fields, nor where somebody turned them off. */
async function singleKeys(open) {
  const { context, page, complaints } = await open({ lang: 'en' })
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key) }
  const focused = () => page.evaluate(() => [...document.querySelectorAll('#list tbody tr')].indexOf(document.activeElement.closest('tr')))
  const users = `${base}/console/store/default/User`
  await page.goto(users)
  await press('j', 'j', 'j', 'k')
  hold('J and K go through rows', (await focused()) === 1, await focused())
  await press('x')
  hold('X selects', (await page.locator('tbody :checked').count()) === 1)
  await press('Escape')
  hold('Esc takes the selection back', (await page.locator('tbody :checked').count()) === 0)
  await press('Enter')
  await page.waitForURL(/User\/[0-9a-f-]{36}/)
  await press('Escape')
  await page.waitForURL(users)
  hold('Enter opens, and Esc goes back', true)
  await press('/', 'n')
  hold('/ searches, and letters in fields are letters', (await page.inputValue('input[type=search]')) === 'n' && page.url().startsWith(users))
  await press('Escape', '?')
  hold('? tells all keys', await page.locator('#keys[open]').isVisible())
  await press('Escape')
  hold('Esc closes it', !(await page.locator('#keys[open]').count()))
  for (const [key, path] of [['a', 'ClientApp'], ['u', 'store/default/User'], ['h', '']]) {
    await press('g', key)
    await page.waitForURL(`${base}/console${path && `/${path}`}`)
  }
  hold('G leads to places', true)
  await page.goto(`${base}/console/me`)
  await page.selectOption('#f-single_keys', 'off')
  await press('Control+s')
  await page.locator('.note:not([data-ends]) output').waitFor()
  await page.goto(users)
  await press('n', '?', 'j')
  hold('turned off they do nothing', page.url() === users && !(await page.locator('#keys[open]').count()) && (await focused()) < 0)
  await page.goto(`${base}/console/me`)
  await page.selectOption('#f-single_keys', '')
  await press('Control+s')
  await page.locator('.note:not([data-ends]) output').waitFor()
  hold('no page complains of keys', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** A form marks what was changed, counts it, and asks before it is left. */
async function leaving(open) {
  const { context, page } = await open({ lang: 'en' })
  await page.goto(`${base}/console/store/default/User`)
  await page.locator('tbody th a').first().click()
  await page.waitForURL(/User\/[0-9a-f-]{36}/)
  const here = page.url()
  await page.fill('#f-nickname', 'Changed')
  hold('what was changed is marked and counted', (await page.locator('label.dot').count()) === 1 && (await page.textContent('.bar [role=status]')).includes('1 unsaved'))
  const asked = []
  const isAsked = new Promise((resolve) => {
    page.on('dialog', async (dialog) => { asked.push(dialog.type()); await dialog.dismiss(); resolve() })
  })
  await page.locator('.places a[href$="/Group"]').click({ noWaitAfter: true })
  await isAsked
  hold('leaving asks', asked.join() === 'beforeunload' && page.url() === here && (await page.inputValue('#f-nickname')) === 'Changed', asked.join())
  await page.click('[data-discard]')
  await page.waitForFunction(() => document.querySelector('#f-nickname')?.value !== 'Changed')
  hold('discarding does not', asked.length === 1)
  await context.close()
}

/** The journeys; `open` makes a page in a context of its own, and `prefer` chooses its language. */
export async function keyboard(open, prefer) {
  await setOptions({ UserDeletionQuarantineEnabled: 'true' })
  for (const walk of WALKS) {
    const { context, page, complaints } = await open({ lang: walk.lang, script: walk.script, width: 1280, height: 800 })
    await prefer(page, { lang: walk.lang, theme: 'light' })
    await page.goto(`${base}/console`)
    const about = await scene(walk)
    const how = `${walk.lang}, ${walk.script ? 'with' : 'without'} script`
    for (const [what, run] of JOURNEYS) {
      const done = await run(new Hands(page, walk.script), about).catch((error) => error.message.split('\n')[0])
      hold(`by keyboard, ${how}: ${what}`, done === true, `${done} (${page.url()})`)
    }
    hold(`by keyboard, ${how}: no page complains`, complaints.length === 0, complaints.join('; '))
    await context.close()
  }
  await setOptions({ UserDeletionQuarantineEnabled: 'false' })
  await singleKeys(open)
  await leaving(open)
}

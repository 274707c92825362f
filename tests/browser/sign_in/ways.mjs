// What people do with a browser besides going on: back, two tabs, another language, a password manager.

import { base } from '../api.mjs'
import { makePerson, request } from './home.mjs'
import { Visitor } from './visitor.mjs'

/** The most bytes of the first page, with all that it needs. */
const LIGHTEST = 30_000

/** Whether the page in front leads anywhere: an app's, or one of ours with a way on. */
async function leadsOn(page) {
  if (!page.url().startsWith(base)) return page.url().startsWith('http')
  return (await page.locator('main form, main a.button').count()) > 0
}

async function back(visitor, { apps, people }, prove) {
  const { page } = visitor
  await page.goto(apps.plain.goodbye)
  await visitor.goThrough(request(apps.plain), people.ann)
  await page.goBack()
  prove('back after a sign-in leads on', await leadsOn(page), `${page.url()}: ${visitor.shown().status}`)
  const name = await makePerson(`joe-${visitor.language}`)
  const again = request(apps.plain, base, { prompt: 'login' })
  await page.goto(apps.plain.goodbye)
  await page.goto(again.address)
  await visitor.signIn(name, 'wrong')
  await visitor.signIn(name)
  await visitor.arrived(again)
  for (const times of ['once', 'twice']) {
    const went = await page.goBack().then(() => true, (error) => error.message.split('\n')[0])
    prove(`back ${times} after a wrong password leads on`, went === true && (await leadsOn(page)), `${page.url()}: ${went}`)
  }
}

async function twoTabs(visitor, { apps, people }, prove) {
  const [one, other] = [request(apps.plain), request(apps.plain)]
  const tab = await visitor.open()
  await visitor.page.goto(one.address)
  await tab.goto(other.address)
  await visitor.signIn(people.ann)
  prove('the first tab arrives with its own answer', (await visitor.arrived(one)).get('state') === one.state)
  // what was typed there does not matter any more
  await visitor.signIn('somebody', 'wrong', tab)
  const answer = await visitor.arrived(other, tab)
  prove('the second tab goes on by the session', answer.get('state') === other.state && answer.has('code'))
  const third = request(apps.plain)
  await tab.goto(third.address)
  prove('who is signed in goes through without a page', (await visitor.arrived(third, tab)).has('code'))
}

/** Opens a request whose answer is a form, goes on, and returns what the app was sent. */
async function posted(visitor, { apps, site }, more, goOn) {
  const one = request(apps.plain, base, { response_mode: 'form_post', ...more })
  visitor.isPostedOn = true
  await goOn(one)
  await visitor.page.waitForURL(one.callback)
  visitor.isPostedOn = false
  return site.posted.find((form) => form.get('state') === one.state)
}

async function formPost(visitor, home, prove) {
  const { page } = visitor
  const open = (one) => page.goto(one.address)
  const refused = await posted(visitor, home, { prompt: 'none' }, open)
  prove('a refusal by a form is sent by itself', refused?.get('error') === 'login_required', refused)
  const answer = await posted(visitor, home, {}, async (one) => {
    visitor.isPostedOn = false
    await open(one)
    await visitor.complaints().then((faults) => visitor.faults.push(...faults))
    visitor.isPostedOn = true
    await visitor.signIn(home.people.ann)
  })
  prove('an answer by a form is sent by itself', answer?.has('code'), answer)
  const known = await posted(visitor, home, { prompt: 'none' }, open)
  prove('also to who is signed in', known?.has('code'), known)
}

async function formPostByHand(visitor, home, prove) {
  const refused = await posted(visitor, home, { prompt: 'none' }, async (one) => {
    await visitor.page.goto(one.address)
    await visitor.press(visitor.page.locator('button.main'))
  })
  prove('without script a form is sent by a click', refused?.get('error') === 'login_required', refused)
}

async function language(visitor, { apps, people }, prove) {
  const { page } = visitor
  const one = request(apps.closed)
  const shown = () => page.locator('html').getAttribute('lang')
  await page.goto(one.address)
  await visitor.press(page.getByRole('link', { name: 'Deutsch' }))
  prove('the language that is chosen is shown', (await shown()) === 'de' && (await page.title()).startsWith('Anmelden'))
  await visitor.signIn(`nobody-${visitor.language}`, 'wrong')
  prove('it stays after a wrong password', (await shown()) === 'de', await shown())
  prove('and can be chosen there', (await page.getByRole('link', { name: 'English' }).count()) === 1)
  await visitor.signIn(people.ann)
  prove('it stays on the next page', (await shown()) === 'de', await shown())
  await page.goto(request(apps.plain, base, { ui_locales: 'fr de en' }).address)
  prove('of the languages that an app asks for the first one that there is', (await shown()) === 'de', await shown())
}

async function passwordManager(visitor, { apps }, prove) {
  const fields = () => visitor.page.locator('input').evaluateAll((all) => all.filter((one) => one.type !== 'hidden')
    .map(({ id, name, type, autocomplete }) => [id, name, type, autocomplete].join(' ')).join(', '))
  const hidden = () => visitor.page.locator('input[type=hidden]').evaluateAll((all) => all.map((one) => one.name).join())
  const wanted = 'username username text username webauthn, password password password current-password, remember remember checkbox '
  // the second form is a passkey's
  const hiddenOnes = 'csrf,csrf,credential'
  await visitor.page.goto(request(apps.plain).address)
  const first = [await fields(), await hidden()]
  await visitor.signIn(`nobody-${visitor.language}`, 'wrong')
  const second = [await fields(), await hidden()]
  prove('a password manager finds the fields that it knows, each time', first[0] === wanted && second[0] === wanted, first[0])
  prove('and nothing else to fill in', first[1] === hiddenOnes && second[1] === hiddenOnes, first[1])
}

async function weight(visitor, { apps }, prove) {
  const requests = []
  visitor.page.on('requestfinished', (one) => requests.push(one))
  await visitor.page.goto(request(apps.plain).address)
  const sizes = await Promise.all(requests.map((one) => one.sizes()))
  const bytes = sizes.reduce((sum, one) => sum + one.responseBodySize + one.responseHeadersSize, 0)
  prove(`the first page takes less than ${LIGHTEST} bytes`, bytes > 1000 && bytes < LIGHTEST, bytes)
  const elsewhere = requests.filter((one) => !one.url().startsWith(base))
  prove('it loads nothing from elsewhere', elsewhere.length === 0)
}

async function take(visitor, home, way, hold) {
  await way(visitor, home, hold)
  const complaints = await visitor.complaints()
  hold(`${way.name}: headers and console`, complaints.length === 0, complaints.join('; '))
}

/** The ways as cases. */
export const wayCases = (browser, home, hold) =>
  [back, twoTabs, formPost, formPostByHand, language, passwordManager, weight].map((way) =>
    [way.name, () => Visitor.visit(browser, { script: way !== formPostByHand }, (visitor) => take(visitor, home, way, hold))])

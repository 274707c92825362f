// What other sites try with the pages: to send their forms, to show them within their own.

import { base } from '../api.mjs'
import { PASSWORD, request } from './home.mjs'
import { passwordForm, post } from './journey.mjs'
import { Visitor } from './visitor.mjs'

/** Runs in a page of another site: sends a form like ours. */
function sendForm({ action, fields }) {
  const form = Object.assign(document.createElement('form'), { method: 'post', action })
  for (const [name, value] of Object.entries(fields)) form.append(Object.assign(document.createElement('input'), { name, value }))
  document.body.append(form)
  form.submit()
}

async function forms(visitor, { apps, people, site }, prove) {
  const { page } = visitor
  await page.goto(request(apps.plain).address)
  const foreign = { 'cross-site': { 'sec-fetch-site': 'cross-site' }, 'same-site': { 'sec-fetch-site': 'same-site' },
    'of nowhere': { 'sec-fetch-site': 'none' }, 'of another origin': { origin: site.origin } }
  for (const [what, headers] of Object.entries(foreign)) {
    const answer = await post(visitor, people.ann, PASSWORD, headers)
    prove(`a form that is ${what} is refused`, answer.status() === 403, answer.status())
  }
  const action = new URL(await passwordForm(page).getAttribute('action'), base).href
  const csrf = await passwordForm(page).locator('[name=csrf]').inputValue()
  for (const [what, form] of Object.entries({ 'without a proof': {}, "with another's proof": { csrf: csrf.slice(1) + csrf[0] } })) {
    const answer = await visitor.context.request.post(action, { form: { ...form, username: people.ann, password: PASSWORD } })
    prove(`a form ${what} is refused`, answer.status() === 403, answer.status())
  }

  // in the browser: from a neighbour of this server, and from another site, from where no cookies of this server come
  // along, so that there is no sign-in to speak of
  const own = page.url()
  const fields = { csrf, username: people.ann, password: PASSWORD }
  for (const [what, origin, wanted] of [['a neighbour', site.neighbour, 403], ['another site', site.stranger, 400]]) {
    await page.goto(origin)
    await Promise.all([page.waitForEvent('framenavigated'), page.evaluate(sendForm, { action, fields })])
    await page.waitForLoadState()
    const { status, kind } = visitor.shown()
    prove(`${what} signs nobody in`, status === wanted && kind.startsWith('text/html') && page.url() === own, `${status} ${page.url()}`)
    await page.goto(own)
    prove(`${what} ends no sign-in under way`, visitor.shown().status === 200, visitor.shown().status)
  }
  const cookies = await visitor.context.cookies(base)
  prove('nobody was signed in', !cookies.some((one) => one.name.endsWith('chancery-session')))
}

async function signingOut(visitor, { apps, people, site }, prove) {
  const { page } = visitor
  await visitor.goThrough(request(apps.plain), people.ann)
  await page.goto(site.neighbour)
  const action = `${base}/connect/endsession?client_id=${apps.plain.id}`
  await Promise.all([page.waitForEvent('framenavigated'), page.evaluate(sendForm, { action, fields: { decision: 'allow' } })])
  const silent = request(apps.plain, base, { prompt: 'none' })
  await page.goto(silent.address)
  prove('another site signs nobody out', (await visitor.arrived(silent)).has('code'))
}

async function frames(visitor, { apps, people, site }, prove) {
  const { page } = visitor
  const within = async (address) => {
    await page.goto(site.neighbour)
    const frame = await page.evaluateHandle((src) => {
      const made = Object.assign(document.createElement('iframe'), { src })
      return new Promise((loaded) => {
        made.onload = () => loaded(made)
        document.body.append(made)
      })
    }, address)
    const shown = await frame.asElement().contentFrame()
    return (await shown.content()).includes('<main') || shown.url().startsWith(base)
  }
  const signingIn = request(apps.plain).address
  await page.goto(signingIn)
  const pages = { 'the password page': signingIn, 'the error page': `${base}/signin/password?flow=AAAA`,
    'the question whether to sign out': `${base}/connect/endsession` }
  for (const [what, address] of Object.entries(pages)) prove(`${what} is not shown within another site`, !(await within(address)))
  await visitor.goThrough(request(apps.plain), people.ann)
  const choice = request(apps.plain, base, { prompt: 'select_account' }).address
  prove('the choice of an account is not shown within another site', !(await within(choice)))
}

/** What strangers try, as cases. The browser complains of some of it, as it should. */
export const strangerCases = (browser, home, hold) => [forms, signingOut, frames].map((attempt) =>
  [attempt.name, () => Visitor.visit(browser, {}, (visitor) => attempt(visitor, home, hold))])

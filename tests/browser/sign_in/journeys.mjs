// Ways through the pages of a sign-in by a password.

import { base } from '../api.mjs'
import { makePerson, request } from './home.mjs'
import { passwordForm, post, press, refusalFaults, says, text, travels, unless } from './journey.mjs'

const namesItself = async (visitor) =>
  unless(/^[0-9a-f]{32}$/.test(await text(visitor, 'code')), 'it names no reference')

/** Completes a sign-in, and keeps the browser on the page that would lead on by itself. */
async function stayAtContinue(visitor, name) {
  const answer = await post(visitor, name)
  const stay = async (route) => {
    const response = await route.fetch({ maxRedirects: 0 })
    const { refresh, ...headers } = response.headers()
    visitor.refresh = refresh
    await route.fulfill({ response, headers })
  }
  await visitor.page.route('**/signin/continue?*', stay)
  await visitor.page.goto(new URL(answer.headers().location, base).href)
  await visitor.page.unroute('**/signin/continue?*', stay)
}

/** Tries wrong passwords until no more are taken; all who do share a name that nobody has. */
async function guess(visitor, home) {
  await visitor.page.goto(request(home.apps.plain).address)
  for (let tried = 0; tried < 100; tried++) {
    // attempts come back one by one: one may be there again when the form is sent
    if ((await post(visitor, home.nobody, 'guessed')).status() !== 429) continue
    await visitor.signIn(home.nobody, 'guessed')
    if (visitor.shown().status === 429) break
  }
}

async function signsIn(visitor, { apps }, stop) {
  // wrong passwords lock whose they are
  const person = await makePerson(`ida-${visitor.language}`)
  const first = request(apps.plain)
  await visitor.page.goto(first.address)
  await stop('the password page', await says(visitor, '.lead', apps.plain.name))

  // browsers ask for what is required by themselves; those that do not are answered by the server
  await passwordForm(visitor.page).evaluate((form) => (form.noValidate = true))
  await press(visitor, 'button.main')
  await stop('an empty form', await refusalFaults(visitor, ['username', 'password']))

  await visitor.signIn(person, 'wrong')
  const typed = await visitor.page.locator('#username').inputValue()
  const faults = unless(typed === person && (await visitor.page.locator('#password').inputValue()) === '',
    'it does not keep the name alone')
  await stop('a wrong password', [...faults, ...(await refusalFaults(visitor, ['password']))])

  await stayAtContinue(visitor, person)
  await stop('the page that leads on', unless(/^0; url=\/signin\/continue\?/.test(visitor.refresh), 'it does not lead on'))
  await press(visitor, 'a.main')
  const answer = await visitor.arrived(first)
  stop.prove('its link leads to the app', answer.has('code') && answer.get('state') === first.state)
}

async function isKnown(visitor, { apps, people, site }, stop) {
  await visitor.goThrough(request(apps.plain), people.ann)
  const native = request(apps.native)
  await visitor.page.goto(native.address)
  await stop('the click that a native app takes', await says(visitor, '.lead', apps.native.name))
  await press(visitor, 'button.main')
  stop.prove('the click leads to the native app', (await visitor.arrived(native)).has('code'))

  const form = request(apps.plain, base, { response_mode: 'form_post' })
  // the form would be sent by itself
  const still = (route) => route.fulfill({ contentType: 'text/javascript', body: '' })
  await visitor.page.route('**/signin/post.js', still)
  visitor.isPostedOn = true
  await visitor.page.goto(form.address)
  await stop('an answer that is a form')
  visitor.isPostedOn = false
  await visitor.page.unroute('**/signin/post.js', still)
  await press(visitor, 'button.main')
  const posted = site.posted.find((one) => one.get('state') === form.state)
  stop.prove('the form brings the answer to the app', posted?.has('code') && posted.get('iss') === base)

  await visitor.goThrough(request(apps.plain, base, { prompt: 'login' }), people.bob)
  const choice = request(apps.plain, base, { prompt: 'select_account' })
  await visitor.page.goto(choice.address)
  await stop('the choice of an account', await says(visitor, 'form', 'Ann Archer'))
  await visitor.press(visitor.page.getByRole('button', { name: 'Ann Archer' }))
  stop.prove('the account that was chosen leads to the app', (await visitor.arrived(choice)).has('code'))

  await visitor.page.goto(`${base}/connect/endsession?client_id=${apps.plain.id}`)
  await stop('the question whether to sign out', await says(visitor, '.lead', apps.plain.name))
  await press(visitor, 'button:not(.main)')
  const { status, kind } = visitor.shown()
  stop.prove('who stays signed in sees a page', status === 200 && kind.startsWith('text/html'), `${status} ${kind}`)
  await visitor.page.goto(`${base}/connect/endsession`)
  await press(visitor, 'button.main')
  await stop('the end of signing out')
}

async function choosesWhere(visitor, { apps, people, issuers }, stop) {
  await visitor.page.goto(request(apps.long, issuers.tenant, { login_hint: people.ann }).address)
  const name = await visitor.page.locator('#username').inputValue()
  await stop('the password page of a tenant, for an app with a long name', unless(name === people.ann, 'it has no name'))

  const wide = request(apps.wide)
  await visitor.page.goto(wide.address)
  await stop('the choice of a tenant', unless((await visitor.page.locator('button').count()) === 2, 'it offers no two'))
  await press(visitor, 'button:not(.main)')
  await visitor.signIn(people.eve)
  stop.prove('the tenant that was chosen leads to the app', (await visitor.arrived(wide)).has('code'))

  await visitor.page.goto(request(apps.wide, base, { prompt: 'select_account' }).address)
  await stop('the choice of a person who has only a login name', await says(visitor, 'form', people.eve))

  const closed = request(apps.closed)
  await visitor.page.goto(closed.address)
  // whose session is of another tenant has to sign in here
  if (await visitor.page.locator('#password').count()) await visitor.signIn(people.eve)
  await stop('a person who is not admitted', await says(visitor, '.lead', apps.closed.name))
  await press(visitor, 'button:not(.main)')
  stop.prove('who is not admitted goes back to the app', (await visitor.arrived(closed)).get('error') === 'access_denied')
  await visitor.page.goto(request(apps.closed).address)
  if (await visitor.page.locator('#password').count()) await visitor.signIn(people.eve)
  await press(visitor, 'button.main')
  stop.prove('who is not admitted may use another account', (await visitor.page.locator('#password').count()) === 1)
}

async function goesWrong(visitor, home, stop) {
  await visitor.page.goto(request({ id: crypto.randomUUID(), callback: home.site.callback }).address)
  await stop('an app that nobody knows', await namesItself(visitor), 400)
  await visitor.page.goto(`${base}/signin/password?flow=AAAAAAAAAAAAAAAA`)
  await stop('a sign-in that nobody knows', await namesItself(visitor), 400)
  await guess(visitor, home)
  const wait = (await visitor.answer.allHeaders())['retry-after']
  await stop('too many attempts', unless(Number(wait) > 0, `it has no Retry-After, but ${wait}`), 429)
}

/** The journeys as cases. */
export const journeyCases = (browser, home, hold) =>
  travels(browser, home, hold, [signsIn, isKnown, choosesWhere, goesWrong])

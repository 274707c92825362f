// Sign-ins at a foreign provider and at this server, in a browser.

import { base } from '../browser/api.mjs'
import { hold } from '../browser/sign_in/cases.mjs'
import { PASSWORD } from '../browser/sign_in/home.mjs'
import { authorize, beginTrial, endTrial, openDirectory, passOn, platformUser, records, restrict, setUp } from './home.mjs'
import { GROUPS, ada, alan } from './people.mjs'

/** Runs this in a new browser session, which is closed at the end. */
export async function visit(browser, run) {
  const context = await browser.newContext({ locale: 'en-GB' })
  const page = await context.newPage()
  try {
    await run(page, context)
  } catch (error) {
    // the page itself shows why what was expected of it did not happen
    const shown = await page.locator('body').innerText({ timeout: 5_000 }).catch((none) => none.message)
    error.message += `\nThe page ${page.url()} shows: ${shown.slice(0, 500)}`
    throw error
  } finally {
    await context.close()
  }
}

export const failure = (page) => page.getByText('The sign-in there did not work')
const isAnswer = (app) => (url) => url.href.startsWith(`${app.callback}?`)

/** From the app's request to the page of the provider. */
export async function goThere(page, { provider, instance }, person, more = {}) {
  const request = await instance.app.request(more)
  await page.goto(request.address)
  provider.arrives?.(person)
  await page.getByRole('link', { name: `Continue with ${instance.name}`, exact: true }).click()
  return request
}

/** The tokens for the response that the app's page got. */
async function tokens(page, { app }, request) {
  await page.waitForURL(isAnswer(app))
  const told = await app.redeem(page.url(), request)
  return { told, claims: told.claims() }
}

/** From the app's request, by the provider's pages, to tokens. */
export async function signIn(page, way, person, more) {
  const request = await goThere(page, way, person, more)
  await way.provider.signIn(page, person)
  return tokens(page, way.instance, request)
}

/** Signs in by a password on the page in front. */
async function signInByPassword(page, { app }, person, request) {
  await page.fill('#username', person)
  await page.fill('#password', PASSWORD)
  await page.locator('button.main').click()
  await page.waitForURL(isAnswer(app))
  return (await app.redeem(page.url(), request)).claims()
}

/** The response to the app without a page. */
async function silently(page, { app }) {
  const request = await app.request({ prompt: 'none' })
  await page.goto(request.address)
  return new URL(page.url()).searchParams
}

export async function isTriedOut(page, { provider, instance }) {
  const begun = await beginTrial(instance)
  const wrong = ({ checks }) => JSON.stringify(checks.filter((check) => !check.passed))
  if (!begun.url) throw new Error(`${instance.name}: the trial leads nowhere: ${wrong(begun)}`)
  const back = page.waitForRequest((request) => request.url().startsWith(`${instance.callback}?`))
  back.catch(() => {})
  provider.arrives?.(ada)
  await page.goto(begun.url)
  await provider.signIn(page, ada)
  const told = await endTrial(instance, new URL((await back).url()).search)
  hold(`${instance.name}: the trial passes`, told.passed && wrong(begun) === '[]', wrong(begun) + wrong(told))
}

/** Signs Ada in for the first time; returns her subject at the server. */
async function becomesKnown(page, way) {
  const { instance, issuer, provider } = way
  const { told, claims } = await signIn(page, way, ada)
  hold(`${instance.name}: the name and the address that the provider told are told on`,
    claims.name === ada.name && claims.given_name === ada.firstName && claims.email === ada.email, JSON.stringify(claims))
  hold(`${instance.name}: that the address is verified is not believed`, claims.email_verified === false, JSON.stringify(claims))
  hold(`${instance.name}: the way of signing in is told`, claims.amr.join() === 'fed', JSON.stringify(claims))
  const info = await instance.app.userInfo(told)
  hold(`${instance.name}: UserInfo tells the same`, info.sub === claims.sub && info.email === ada.email, JSON.stringify(info))
  const person = await platformUser(claims.sub)
  const [identity, ...others] = person.identities
  const subject = provider.subjects?.[ada.sub] ?? ada.sub
  hold(`${instance.name}: a platform user has the identity`, others.length === 0 && identity.issuer === issuer
    && identity.subject === subject && identity.idpInstanceId === instance.id, JSON.stringify(person))
  hold(`${instance.name}: its fields are what the provider told`, person.firstName === ada.firstName
    && person.lastName === ada.lastName && person.emailAddress === ada.email, JSON.stringify(person))
  const found = await records(`platformUserId eq "${claims.sub}"`)
  hold(`${instance.name}: the sign-in is on record`, found.length === 1 && found[0].idpInstanceId === instance.id
    && found[0].outcome === 'SignedIn' && found[0].methods === 'fed', JSON.stringify(found))
  return claims.sub
}

export async function signsOut(page, { instance }) {
  hold(`${instance.name}: by the session nobody is asked again`, (await silently(page, instance)).has('code'), page.url())
  await page.goto(instance.app.endSession())
  await page.locator('button.main').click()
  await page.waitForURL(instance.app.goodbye)
  const after = await silently(page, instance)
  hold(`${instance.name}: who signed out is known no longer`, after.get('error') === 'login_required', page.url())
}

/** The app requires a new sign-in, or one that is not too old. */
async function isDemanded(browser, way) {
  const { instance, provider } = way
  await visit(browser, async (page, context) => {
    if (!provider.tellsAuthTime) {
      await goThere(page, way, ada, { max_age: '600' })
      await provider.signIn(page, ada)
      await failure(page).waitFor()
      hold(`${instance.name}: without a time of the sign-in there, max_age is not met`, true)
      return
    }
    const first = await signIn(page, way, ada, { max_age: '86400' })
    const again = await signIn(page, way, ada, { prompt: 'login' })
    hold(`${instance.name}: prompt=login asks there again`, again.claims.auth_time >= first.claims.auth_time, JSON.stringify(again.claims))
    if (!provider.makeOlder) return
    const now = () => Date.now() / 1000
    const signedInAgo = ({ claims }, seconds) => Math.abs(now() - seconds - claims.auth_time) < 300
    provider.makeOlder(3600)
    // the session there is left alone
    await context.clearCookies({ domain: new URL(base).hostname })
    const request = await goThere(page, way, ada, { max_age: '7200' })
    const old = await tokens(page, instance, request)
    hold(`${instance.name}: auth_time is when the person signed in there`, signedInAgo(old, 3600), JSON.stringify(old.claims))
    const anew = await signIn(page, way, ada, { max_age: '600' })
    hold(`${instance.name}: max_age asks there again`, signedInAgo(anew, 0), JSON.stringify(anew.claims))
    provider.makeOlder(3600)
    await context.clearCookies({ domain: new URL(base).hostname })
    const fresh = await signIn(page, way, ada, { prompt: 'login' })
    hold(`${instance.name}: prompt=login gives a new time`, signedInAgo(fresh, 0), JSON.stringify(fresh.claims))
  })
}

/** The person cancels at the provider. */
async function isCancelled(browser, way) {
  const { instance, provider } = way
  if (!provider.cancel) return
  await visit(browser, async (page) => {
    await goThere(page, way, ada)
    await provider.cancel(page)
    await page.getByText('The sign-in there was cancelled').waitFor()
    await page.getByRole('link', { name: `Continue with ${instance.name}`, exact: true }).click()
    await provider.signIn(page, ada)
    await page.waitForURL(isAnswer(instance.app))
    hold(`${instance.name}: who cancels there is led back, and can go there again`, true)
  })
}

/** The provider stops after Ada has signed in there; then it is there again. */
async function isDown(browser, way, home, sub) {
  const { proxy, instance, provider } = way
  proxy.shutAfter(instance.callback)
  await visit(browser, async (page) => {
    const request = await goThere(page, way, ada)
    await provider.signIn(page, ada)
    await failure(page).waitFor()
    const link = page.getByRole('link', { name: `Continue with ${instance.name}`, exact: true })
    hold(`${instance.name}: a provider that stopped leads back to the page`, await link.isVisible())
    const claims = await signInByPassword(page, instance, home.person, request)
    hold(`${instance.name}: and a password signs in there`, claims.amr.join() === 'pwd' && claims.sub !== sub, JSON.stringify(claims))
  })
  await proxy.reopen()
  await visit(browser, async (page) => {
    const { claims } = await signIn(page, way, ada)
    hold(`${instance.name}: once it is back it signs in`, claims.sub === sub, JSON.stringify(claims))
  })
}

/** Opens the app and signs in on the pages of the provider. */
const comes = (browser, way, person, run) => visit(browser, async (page) => {
  await goThere(page, way, person)
  await way.provider.signIn(page, person)
  await run(page)
})
const isIn = ({ instance }) => (page) => page.waitForURL(isAnswer(instance.app))
const isOut = (page) => page.getByText('You cannot sign in here').first().waitFor()

/** Ada signs in at a restricted app, before and after she is authorized. */
export async function isRestricted(browser, way, sub) {
  const { instance } = way
  await restrict(instance, true)
  await comes(browser, way, ada, isOut)
  const refused = await records(`platformUserId eq "${sub}" and outcome eq "Refused"`)
  hold(`${instance.name}: a restricted app is closed to whom it does not name, on record`,
    refused.length === 1 && refused[0].reason === 'NotAdmitted' && refused[0].idpInstanceId === instance.id, JSON.stringify(refused))
  await authorize(instance, 'authorizedusers', [sub])
  await comes(browser, way, ada, isIn(way))
  hold(`${instance.name}: it is open to a person whom it names`, true)
  await authorize(instance, 'authorizedusers', [])
  await restrict(instance, false)
}

/** The app is restricted to a provisioned group with Alan as a member. */
async function isForGroup(browser, way, group) {
  const { instance } = way
  await restrict(instance, true)
  await authorize(instance, 'authorizedgroups', [group])
  await comes(browser, way, alan, isIn(way))
  await comes(browser, way, ada, isOut)
  hold(`${instance.name}: an app for a group is open to its members alone`, true)
  await authorize(instance, 'authorizedgroups', [])
  await restrict(instance, false)
}

/** A sign-out here also signs out at the provider. */
async function signsOutThere(browser, way) {
  const { instance, provider } = way
  if (!provider.signOut) return
  await setUp(instance, { SignOutUpstream: 'true' })
  await visit(browser, async (page) => {
    await signIn(page, way, ada)
    await page.goto(instance.app.endSession())
    await page.locator('button.main').click()
    await provider.signOut(page)
    await page.waitForURL(instance.app.goodbye)
    const after = await silently(page, instance)
    hold(`${instance.name}: who signed out here and there comes back to the app`, after.get('error') === 'login_required', page.url())
    await goThere(page, way, ada)
    await provider.asksAgain(page)
    hold(`${instance.name}: and is asked there again`, true)
  })
  await setUp(instance, { SignOutUpstream: 'false' })
}

/** Runs all checks of a provider; returns Ada's subject at the server. */
export async function walk(browser, way, home) {
  const { instance } = way
  let sub
  await visit(browser, (page) => isTriedOut(page, way))
  await visit(browser, async (page) => {
    sub = await becomesKnown(page, way)
    await signsOut(page, way)
  })
  await visit(browser, async (page) => {
    const { claims } = await signIn(page, way, ada)
    hold(`${instance.name}: the next sign-in is the same person's`, claims.sub === sub, JSON.stringify(claims))
    hold(`${instance.name}: groups of the provider are not told by themselves`, claims.groups.length === 0, JSON.stringify(claims))
  })
  await passOn(instance, 'groups')
  const make = await openDirectory(instance)
  const provisioned = await make('Users', {
    userName: alan.sub, externalId: way.provider.subjects?.[alan.sub] ?? alan.sub,
    name: { givenName: alan.firstName, familyName: alan.lastName }, emails: [{ value: alan.email, primary: true }],
  })
  await visit(browser, async (page) => {
    const { claims } = await signIn(page, way, alan)
    hold(`${instance.name}: somebody else there is whom a directory provisioned`, claims.sub === provisioned && claims.name === alan.name, JSON.stringify(claims))
    hold(`${instance.name}: a claim rule passes groups on`, claims.groups?.toSorted().join() === GROUPS.toSorted().join(), JSON.stringify(claims))
  })
  await isDemanded(browser, way)
  await isCancelled(browser, way)
  await isRestricted(browser, way, sub)
  await isForGroup(browser, way, await make('Groups', { displayName: 'Analysts', members: [{ value: provisioned }] }))
  await signsOutThere(browser, way)
  await isDown(browser, way, home, sub)
  return sub
}

/** A provider that was never reachable: the error leads back to the sign-in page. */
export async function wasNeverThere(browser, way, home) {
  await visit(browser, async (page) => {
    const request = await goThere(page, way, ada)
    await failure(page).waitFor()
    const claims = await signInByPassword(page, way.instance, home.person, request)
    hold(`${way.instance.name}: leads back to the page, and a password signs in there`, claims.amr.join() === 'pwd', JSON.stringify(claims))
  })
}

/** Ada signs in once more. */
export async function comesAgain(browser, way, what, sub) {
  await visit(browser, async (page) => {
    const { claims } = await signIn(page, way, ada)
    hold(`${way.instance.name}: ${what}`, claims.sub === sub, JSON.stringify(claims))
  })
}

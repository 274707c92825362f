// The people who sign in, and the client apps that they sign in to; made anew for each run.

import { administration, base, call, setOptions } from '../api.mjs'
import { serve } from '../chromium.mjs'

const management = '/api/management/v2'
const run = Date.now().toString(36)
// RFC 7636, appendix B: nobody redeems the codes
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
export const PASSWORD = 'four lively grey herons'
/** Words as long as they come. */
const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'

const relate = (path, ids) => call('POST', management + path, { relatedIds: ids }, 202)
const first = async (resource, name) =>
  (await call('GET', `${management}/${resource}?filter=${encodeURIComponent(`name eq "${name}"`)}`, undefined, 200))[0]

/** The site of the client apps: shows what it was sent, and keeps it. */
async function openSite() {
  const posted = []
  const site = await serve((request, answer) => {
    let body = ''
    request.on('data', (part) => (body += part)).on('end', () => {
      if (request.method === 'POST') posted.push(new URLSearchParams(body))
      answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>The app</title><p>Welcome')
    })
  })
  // this machine has two names: at the server's own the site is its neighbour, at the other one a stranger
  const named = (host) => `http://${host}:${site.port}`
  const own = new URL(base).hostname
  const other = own === 'localhost' ? '127.0.0.1' : 'localhost'
  return { ...site, posted, neighbour: named(own), stranger: named(other), callback: `${site.origin}/callback`, goodbye: `${site.origin}/bye` }
}

/** Makes a user of the default store. */
export async function makePerson(name, members = {}) {
  const loginName = `${name}-${run}`
  const user = await call('POST', `${administration}/User`, { loginName, ...members }, 201)
  await call('POST', `${administration}/User/${user.id}/password/reset`, { newPassword: PASSWORD }, 200)
  return loginName
}

/** Makes a user who has neither password nor passkey, and an access pass for them. */
export async function makeNewcomer(name) {
  const loginName = `${name}-${run}`
  const user = await call('POST', `${administration}/User`, { loginName }, 201)
  const passes = `${administration}/passkey-security/temporary-access-passes`
  return { name: loginName, pass: (await call('POST', passes, { userId: user.id }, 201)).value }
}

async function makeApp(name, site, tenants, instance, members = {}) {
  const app = await call('POST', `${management}/ClientApp`, { name: `${name} ${run}`, isPublic: true, ...members }, 201)
  // a native app's loopback address may have any port, by number alone
  const callback = members.isNativeApplication ? `http://127.0.0.1:${site.port}/callback` : site.callback
  for (const [uri, redirectUriType] of [[callback, 'Login'], [site.goodbye, 'Logout']]) {
    await call('POST', `${management}/ClientAppRedirectUri`, { clientAppId: app.id, uri, redirectUriType }, 201)
  }
  await relate(`/ClientApp/${app.id}/tenants`, tenants)
  await relate(`/IdpInstance/${instance}/clientapps`, [app.id])
  return { id: app.id, name: app.name, callback, goodbye: site.goodbye }
}

/** Makes all that the checks need. */
export async function openHome() {
  const site = await openSite()
  const tenant = await first('Tenant', 'Default')
  const instance = (await first('IdpInstance', 'default')).id
  const branch = { name: `Branch ${run}`, subscriptionId: tenant.subscriptionId }
  const second = (await call('POST', `${management}/Tenant`, branch, 201)).id
  await relate(`/IdpInstance/${instance}/tenants`, [second])
  /** An app in a tenant of its own, which has these options. */
  const makeApart = async (name, options) => {
    const body = { name: `${name} ${run}`, subscriptionId: tenant.subscriptionId }
    const { id } = await call('POST', `${management}/Tenant`, body, 201)
    await relate(`/IdpInstance/${instance}/tenants`, [id])
    await setOptions(options, ` and applyToTenantId eq "${id}"`)
    return { ...(await makeApp(name, site, [id], instance)), tenant: id }
  }
  const make = (name, members, tenants = [tenant.id]) => makeApp(name, site, tenants, instance, members)
  const asking = await makeApart('Census', {})
  const items = [
    { key: 'phoneNumber', label: 'Mobile number', position: 1, validationFormat: 'PhoneE164' },
    { key: 'department', label: 'Department', position: 2, minLength: 2, maxLength: 40 },
    { key: 'song', label: LONG, position: 3, isRequired: false },
  ]
  for (const item of items) await call('POST', `${management}/UserQuestionnaireItem`, { tenantId: asking.tenant, ...item }, 201)
  const guarded = await makeApart('Strongroom', { RememberDeviceLifetime: '30.00:00:00' })
  const factor = { name: `Authenticator ${run}`, idpTypeId: (await first('IdpType', 'totp')).id }
  const { id } = await call('POST', `${management}/MfaInstance`, factor, 201)
  await relate(`/MfaInstance/${id}/tenants`, [guarded.tenant])
  await relate(`/ClientApp/${guarded.id}/mfainstances`, [id])
  return {
    site,
    issuers: { installation: base, tenant: `${base}/t/${tenant.id}` },
    // whose password all guess who guess
    nobody: `nobody-${run}`,
    people: {
      ann: await makePerson('ann', { firstName: 'Ann', lastName: 'Archer', emailAddress: `ann-${run}@example.com` }),
      bob: await makePerson('bob', { firstName: 'Bob', lastName: LONG }),
      // as in the README: a name to sign in by, and nothing else
      eve: await makePerson('eve'),
    },
    apps: {
      plain: await make('Harbour Ledger'),
      long: await make(LONG),
      native: await make('Pocket Ledger', { isNativeApplication: true }),
      closed: await make('Vault', { isRestricted: true }),
      wide: await make('Fleet', {}, [tenant.id, second]),
      guarded,
      asking,
      binding: await makeApart('Notary', { TermsVersion: '2026-11', TermsUrl: `${site.origin}/terms` }),
      mailing: await makeApart('Post Office', { EmailConfirmationRequired: 'true' }),
    },
  }
}

let requests = 0

/** An authorization request: where it goes, and the state that its answer brings back. */
export function request(app, issuer = base, more = {}) {
  const state = `state-${++requests}`
  const query = new URLSearchParams({
    client_id: app.id, redirect_uri: app.callback, response_type: 'code', scope: 'openid', state,
    code_challenge: challenge, code_challenge_method: 'S256', ...more,
  })
  return { address: `${issuer}/connect/authorize?${query}`, state, issuer, callback: app.callback }
}

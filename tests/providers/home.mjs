// What the checks create at the server: client apps, instances, and a person of the user store.

import * as openid from 'openid-client'
import { base, call, setOptions } from '../browser/api.mjs'
import { serve } from '../browser/chromium.mjs'
import { makePerson } from '../browser/sign_in/home.mjs'

const management = '/api/management/v2'
const list = (path, condition) =>
  call('GET', `${management}/${path}${condition ? `?filter=${encodeURIComponent(condition)}` : ''}`, undefined, 200)
const named = async (resource, name) => (await list(resource, `name eq "${name}"`))[0]
const create = (resource, body) => call('POST', `${management}/${resource}`, body, 201)
const relate = (path, ids) => call('POST', `${management}${path}`, { relatedIds: ids }, 202)

/** A client app: openid-client validates all responses. */
class App {
  constructor(config, { id, name }, site) {
    Object.assign(this, { config, id, name, site, callback: `${site.origin}/callback`, goodbye: `${site.origin}/bye` })
  }

  /** An authorization request with these additional parameters, and the values that its response must have. */
  async request(more = {}) {
    const verifier = openid.randomPKCECodeVerifier()
    const [state, nonce] = [openid.randomState(), openid.randomNonce()]
    const url = openid.buildAuthorizationUrl(this.config, {
      redirect_uri: this.callback, scope: 'openid profile email', state, nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256', ...more,
    })
    const expected = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    // openid-client checks auth_time
    if (more.max_age) expected.maxAge = Number(more.max_age)
    return { address: url.href, expected }
  }

  /** The tokens for an answer to a request. */
  redeem(answer, { expected }) {
    return openid.authorizationCodeGrant(this.config, new URL(answer), expected)
  }

  userInfo(tokens) {
    return openid.fetchUserInfo(this.config, tokens.access_token, tokens.claims().sub)
  }

  endSession() {
    return openid.buildEndSessionUrl(this.config, { post_logout_redirect_uri: this.goodbye }).href
  }
}

/** Makes an app of the default tenant, for people of the default store. */
async function makeApp(name, site, home) {
  const app = await create('ClientApp', { name: `${name}: ${home.run}`, includeGroupsClaims: true })
  for (const [uri, redirectUriType] of [[`${site.origin}/callback`, 'Login'], [`${site.origin}/bye`, 'Logout']]) {
    await create('ClientAppRedirectUri', { clientAppId: app.id, uri, redirectUriType })
  }
  await relate(`/ClientApp/${app.id}/tenants`, [home.tenant.id])
  await relate(`/IdpInstance/${home.store.id}/clientapps`, [app.id])
  const { secret } = await create('ClientAppSecret', { clientAppId: app.id })
  const authentication = openid.ClientSecretBasic(secret)
  // loopback
  const config = await openid.discovery(new URL(base), app.id, undefined, authentication, { execute: [openid.allowInsecureRequests] })
  return new App(config, app, site)
}

export async function openHome() {
  const site = await serve((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>The app</title>'))
  const home = { run: Date.now().toString(36), tenant: await named('Tenant', 'Default'), store: await named('IdpInstance', 'default') }
  // no offer of a passkey, and no delays between attempts
  const before = { PasskeyEnrolment: 'Off', LoginThrottlingEnabled: 'false' }
  await setOptions(before, ` and applyToIdpInstanceId eq "${home.store.id}"`)
  const person = await makePerson('ann', { firstName: 'Ann', lastName: 'Archer' })

  /** An app without an instance of a provider. */
  const makeAppOf = (name) => makeApp(name, site, home)
  /** An instance of this type without a provider yet, and an app for its people. */
  const open = async (name, type = 'OpenIdConnect') => {
    const { id: idpTypeId } = await named('IdpType', type)
    const instance = await create('IdpInstance', { name, idpTypeId, subscriptionId: home.tenant.subscriptionId })
    await relate(`/IdpInstance/${instance.id}/tenants`, [home.tenant.id])
    const app = await makeAppOf(name)
    await relate(`/IdpInstance/${instance.id}/clientapps`, [app.id])
    return { name, app, id: instance.id, callback: `${base}/external/${instance.id}/callback` }
  }
  /** Links a certificate: of the server, with its key, or of a provider. */
  const linkCertificate = async (instance, certType, { certificate, key }) => {
    const certificateInput = { format: 'Pem', data: certificate, privateKey: key }
    const body = { name: `${certType} of ${instance.name}`, certType, certificateInput }
    const store = await create('CertStore', { ...body, subscriptionId: home.tenant.subscriptionId })
    await relate(`/IdpInstance/${instance.id}/certstores`, [store.id])
  }
  return { person, open, makeApp: makeAppOf, linkCertificate }
}

/** Sets options of an instance. */
export const setUp = (instance, options) => setOptions(options, ` and applyToIdpInstanceId eq "${instance.id}"`)

/** Passes this claim of the provider on to the app. */
export const passOn = (instance, claim) => create('ClaimRule', {
  name: `${claim} of ${instance.name}`, ruleType: 'Filter', ruleLevel: 'ClientAppIdpInstance', inputSource: 'IdentityProvider',
  typeEvaluationRule: `^${claim}$`, applyToIdpInstanceId: instance.id, clientApps: [{ id: instance.app.id }],
})

/** Restricts the app to authorized users and groups, or opens it to all. */
export const restrict = async ({ app }, isRestricted) => {
  const { concurrencyToken } = await call('GET', `${management}/ClientApp/${app.id}`, undefined, 200)
  await call('PATCH', `${management}/ClientApp/${app.id}`, { isRestricted, concurrencyToken }, 202)
}
/** Replaces the `authorizedusers` or `authorizedgroups` of the app. */
export const authorize = ({ app }, relation, ids) => call('PUT', `${management}/ClientApp/${app.id}/${relation}`, { relatedIds: ids }, 202)

/** Provisions people and groups of an instance by SCIM: returns a function that creates a resource and returns its id. */
export async function openDirectory(instance) {
  await setUp(instance, { ScimEnabled: 'true' })
  await call('POST', `${management}/IdpInstance/${instance.id}/scim/token`, undefined, 204)
  const [{ value }] = await list('Option', `name eq "ScimToken" and applyToIdpInstanceId eq "${instance.id}"`)
  const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/scim+json' }
  return async function make(of, resource) {
    const address = `${base}/api/scim/v2/${encodeURIComponent(instance.name)}/${of}`
    const answer = await fetch(address, { method: 'POST', headers, body: JSON.stringify(resource) })
    const made = await answer.json()
    if (answer.status !== 201) throw new Error(`the directory of ${instance.name} makes none of ${of}: ${JSON.stringify(made)}`)
    return made.id
  }
}

export const platformUser = (id) => call('GET', `${management}/ApplicationUser/${id}`, undefined, 200)
export const records = (condition) => list('SignInRecord', condition)
export const beginTrial = (instance) => call('POST', `${management}/IdpInstance/${instance.id}/trial`, undefined, 200)
export const endTrial = (instance, query) => call('POST', `${management}/IdpInstance/${instance.id}/trial/answer`, { query }, 200)

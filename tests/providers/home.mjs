// What the checks make at the server: client apps, instances, and the person of the user store.

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

/** A client app, by openid-client: what it gets is judged by that. */
class App {
  constructor(config, id, site) {
    Object.assign(this, { config, id, site, callback: `${site.origin}/callback`, goodbye: `${site.origin}/bye` })
  }

  /** An authorization request with these parameters besides the usual ones, and what its answer must show. */
  async request(more = {}) {
    const verifier = openid.randomPKCECodeVerifier()
    const [state, nonce] = [openid.randomState(), openid.randomNonce()]
    const url = openid.buildAuthorizationUrl(this.config, {
      redirect_uri: this.callback, scope: 'openid profile email', state, nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256', ...more,
    })
    const expected = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    // auth_time is looked at
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
  return new App(config, app.id, site)
}

export async function openHome() {
  const site = await serve((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>The app</title>'))
  const home = { run: Date.now().toString(36), tenant: await named('Tenant', 'Default'), store: await named('IdpInstance', 'default') }
  // nobody clicks through an offer of a passkey, and what types here is faster than people are
  const before = { PasskeyEnrolment: 'Off', LoginThrottlingEnabled: 'false' }
  await setOptions(before, ` and applyToIdpInstanceId eq "${home.store.id}"`)
  const person = await makePerson('ann', { firstName: 'Ann', lastName: 'Archer' })
  const type = await named('IdpType', 'OpenIdConnect')

  /** An instance of type OpenIdConnect without a provider yet, and an app for its people. */
  const open = async (name) => {
    const instance = await create('IdpInstance', { name, idpTypeId: type.id, subscriptionId: home.tenant.subscriptionId })
    await relate(`/IdpInstance/${instance.id}/tenants`, [home.tenant.id])
    const app = await makeApp(name, site, home)
    await relate(`/IdpInstance/${instance.id}/clientapps`, [app.id])
    return { name, app, id: instance.id, callback: `${base}/external/${instance.id}/callback` }
  }
  /** Connects it to a provider. */
  const connect = (instance, issuer, options) =>
    setOptions({ Authority: issuer, ...options }, ` and applyToIdpInstanceId eq "${instance.id}"`)
  /** Lets the server prove itself at the provider by the key of this certificate. */
  const linkKey = async (instance, { certificate, key }) => {
    const certificateInput = { format: 'Pem', data: certificate, privateKey: key }
    const body = { name: `Key of ${instance.name}`, certType: 'OidcTokenSigning', certificateInput }
    const store = await create('CertStore', { ...body, subscriptionId: home.tenant.subscriptionId })
    await relate(`/IdpInstance/${instance.id}/certstores`, [store.id])
  }
  return { person, open, connect, linkKey }
}

/** Lets the app be told what a provider tells as this claim. */
export const passOn = (instance, claim) => create('ClaimRule', {
  name: `${claim} of ${instance.name}`, ruleType: 'Filter', ruleLevel: 'ClientAppIdpInstance', inputSource: 'IdentityProvider',
  typeEvaluationRule: `^${claim}$`, applyToIdpInstanceId: instance.id, clientApps: [{ id: instance.app.id }],
})

export const platformUser = (id) => call('GET', `${management}/ApplicationUser/${id}`, undefined, 200)
export const records = (condition) => list('SignInRecord', condition)
export const beginTrial = (instance) => call('POST', `${management}/IdpInstance/${instance.id}/trial`, undefined, 200)
export const endTrial = (instance, query) => call('POST', `${management}/IdpInstance/${instance.id}/trial/answer`, { query }, 200)

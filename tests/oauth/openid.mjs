// openid-client gets tokens in every way, and uses them.
//
//   CHANCERY_BASE=... CHANCERY_APPS=FILE node openid.mjs

import * as jose from 'jose'
import * as openid from 'openid-client'

import { apps, base, prove } from './prove.mjs'

const users = new URL(`${base}/api/userstore/v2/default/administration/User?count=1`)

async function configure(app, authentication, issuer = base) {
  return openid.discovery(new URL(issuer), app.id, undefined, authentication, {
    // loopback
    execute: [openid.allowInsecureRequests],
  })
}

async function privateKey(app) {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  const key = await crypto.subtle.importKey('jwk', app.key, algorithm, false, ['sign'])
  return openid.PrivateKeyJwt({ key, kid: app.key.kid })
}

async function read(config, granted, options) {
  const answer = await openid.fetchProtectedResource(config, granted.access_token, users, 'GET', null, null, options)
  return answer.status
}

async function refused(what, error, asking) {
  try {
    await asking()
  } catch (problem) {
    // where the answer has a challenge, the client looks no further
    const told = problem.error ?? (problem.response?.status === 401 ? 'invalid_client' : String(problem))
    prove(what, told === error, told)
    return
  }
  prove(what, false, 'it was not refused')
}

const ways = {
  basic: openid.ClientSecretBasic(apps.basic.secret),
  post: openid.ClientSecretPost(apps.post.secret),
  secret_jwt: openid.ClientSecretJwt(apps.secret_jwt.secret),
  private_key: await privateKey(apps.private_key),
  reference: openid.ClientSecretBasic(apps.reference.secret),
}
for (const [name, authentication] of Object.entries(ways)) {
  const config = await configure(apps[name], authentication)
  const granted = await openid.clientCredentialsGrant(config, { scope: 'read' })
  prove(`${name}: a token`, granted.token_type === 'bearer' && granted.scope === 'read', granted)
  prove(`${name}: it is used`, (await read(config, granted)) === 200)
  const told = await openid.tokenIntrospection(config, granted.access_token)
  prove(`${name}: introspection`, told.active && told.client_id === apps[name].id, told)
  await openid.tokenRevocation(config, granted.access_token)
  const after = await openid.tokenIntrospection(config, granted.access_token)
  prove(`${name}: revocation`, after.active === false, after)
  const answer = await fetch(users, { headers: { authorization: `Bearer ${granted.access_token}` } })
  prove(`${name}: it is used no more`, answer.status === 401, answer.status)
}

for (const [name, authentication] of [
  ['dpop', openid.ClientSecretBasic(apps.dpop.secret)],
  ['nonce', await privateKey(apps.nonce)],
]) {
  const config = await configure(apps[name], authentication)
  await refused(`${name}: no token without a proof`, 'invalid_dpop_proof', () => openid.clientCredentialsGrant(config))
  const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
  const granted = await openid.clientCredentialsGrant(config, undefined, { DPoP })
  prove(`${name}: a token`, granted.token_type === 'dpop', granted)
  prove(`${name}: it is used`, (await read(config, granted, { DPoP })) === 200)
  const answer = await fetch(users, { headers: { authorization: `Bearer ${granted.access_token}` } })
  prove(`${name}: it is none without its key`, answer.status === 401, answer.status)
}

const owner = await configure(apps.basic, ways.basic)
const other = await configure(apps.post, ways.post)
const subject = await openid.clientCredentialsGrant(owner, { scope: 'read' })
const type = 'urn:ietf:params:oauth:token-type:access_token'
const exchange = (config) =>
  openid.genericGrantRequest(config, 'urn:ietf:params:oauth:grant-type:token-exchange', {
    subject_token: subject.access_token,
    subject_token_type: type,
  })
const exchanged = await exchange(other)
prove('exchange: a token', exchanged.issued_token_type === type, exchanged)
prove('exchange: it is used', (await read(other, exchanged)) === 200)
const told = await openid.tokenIntrospection(other, exchanged.access_token)
prove('exchange: who acts', told.sub === apps.basic.id && told.act.sub === apps.post.id, told)
const third = await configure(apps.private_key, ways.private_key)
await refused('exchange: not by others', 'unauthorized_client', () => exchange(third))
const wrong = await configure(apps.basic, openid.ClientSecretBasic('wrong'))
await refused('a wrong secret', 'invalid_client', () => openid.clientCredentialsGrant(wrong))

// each tenant is an issuer: who trusts one takes no token of the other, nor of the installation
const audience = 'PlatformManagementService'
const issuers = [apps.one, apps.two].map((app) => `${base}/t/${app.tenant}`)
const tokens = []
const trusted = []
for (const [place, app] of [apps.one, apps.two].entries()) {
  const config = await configure(app, openid.ClientSecretBasic(app.secret), issuers[place])
  tokens.push((await openid.clientCredentialsGrant(config)).access_token)
  trusted.push(jose.createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri)))
}
const atHome = await configure(apps.one, openid.ClientSecretBasic(apps.one.secret))
tokens.push((await openid.clientCredentialsGrant(atHome)).access_token)
for (const [place, issuer] of issuers.entries()) {
  const verify = (token) => jose.jwtVerify(token, trusted[place], { issuer, audience, typ: 'at+jwt' })
  const { payload } = await verify(tokens[place])
  prove(`issuer ${place}: its own token`, payload.tid === [apps.one, apps.two][place].tenant, payload)
  for (const [other, token] of tokens.entries()) {
    if (other === place) continue
    const refusal = await verify(token).then(() => null, (problem) => problem.code)
    prove(`issuer ${place}: not the token of ${other}`, refusal === 'ERR_JWT_CLAIM_VALIDATION_FAILED', refusal)
  }
}
const foreign = await configure(apps.two, openid.ClientSecretBasic(apps.two.secret), issuers[0])
await refused('issuer: no client app of another tenant', 'invalid_client', () => openid.clientCredentialsGrant(foreign))

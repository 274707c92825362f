// oidc-provider as a peer of the benchmark: one process, everything in memory, a password page of its own.
//
//   BENCH_PEER='{"port": .., "hash": .., "cookieKey": .., "from": .., "step": .., "below": ..}' node server.mjs
//
// It has a session for each number in from, from + step, .. below, under the cookie value that the harness sends.

import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { verify } from '@node-rs/argon2'
import { Provider } from 'oidc-provider'
import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js'

const settings = JSON.parse(process.env.BENCH_PEER)
const RESOURCE = 'urn:bench:resource'
const DAY = 24 * 3600
// the clients that people sign in to, and the algorithms of their ID tokens
const CLIENTS = { default: 'RS256', elliptic: 'ES256', public: 'RS256' }
// those that sessions have a grant for from the start
const GRANTED = ['default', 'elliptic']

const client = ([id, algorithm]) => ({
  client_id: id,
  client_name: 'Bench',
  redirect_uris: ['https://app.example/callback'],
  response_types: ['code', 'none'],
  id_token_signed_response_alg: algorithm,
  ...(id === 'public'
    ? { token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'] }
    : { token_endpoint_auth_method: 'client_secret_basic', client_secret: 'a-secret-for-measuring-only' }),
})

const key = (alg, type, options) => {
  const { privateKey } = generateKeyPairSync(type, options)
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig' }
}

// The storage of its memory adapter, whose own storage holds only the last 1,000 entries.
const entries = new Map()
const store = {
  get: (name) => {
    const entry = entries.get(name)
    return entry && entry.until > Date.now() ? entry.value : undefined
  },
  set: (name, value, { maxAge = Infinity } = {}) => entries.set(name, { value, until: Date.now() + maxAge }),
  delete: (name) => entries.delete(name),
}

const grantOf = async (accountId, clientId) => {
  const grant = new provider.Grant({ accountId, clientId })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(RESOURCE, 'openid')
  return [grant, await grant.save(14 * DAY)]
}

const base = `http://127.0.0.1:${settings.port}`
const provider = new Provider(base, {
  adapter: (model) => new MemoryAdapter(model, store),
  clients: Object.entries(CLIENTS).map(client),
  cookies: { keys: [settings.cookieKey] },
  jwks: { keys: [key('RS256', 'rsa', { modulusLength: 2048 }), key('ES256', 'ec', { namedCurve: 'P-256' })] },
  routes: { authorization: '/connect/authorize', token: '/connect/token' },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  // nobody is asked for consent
  loadExistingGrant: async ({ oidc }) => {
    const { clientId } = oidc.client
    const known = oidc.session.grantIdFor(clientId)
    if (known) return oidc.provider.Grant.find(known)
    return (await grantOf(oidc.session.accountId, clientId))[0]
  },
  // access tokens are JWTs, signed by ES256, as those that they are compared with
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'openid',
        audience: RESOURCE,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 3600,
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
  // without a page for consent it removes the scope offline_access, so the client decides instead
  issueRefreshToken: (ctx, { clientId }) => clientId === 'public',
  expiresWithSession: (ctx, { clientId }) => clientId !== 'public',
  rotateRefreshToken: true,
  ttl: {
    AccessToken: 3600,
    AuthorizationCode: 60,
    Grant: 14 * DAY,
    IdToken: 3600,
    Interaction: 3600,
    RefreshToken: 14 * DAY,
    Session: 14 * DAY,
  },
})

// The sessions.
for (let number = settings.from; number < settings.below; number += settings.step) {
  const accountId = `user-${number}`
  const authorizations = {}
  for (const clientId of GRANTED) {
    authorizations[clientId] = { sid: `sid-${number}`, grantId: (await grantOf(accountId, clientId))[1] }
  }
  const loginTs = Math.floor(Date.now() / 1000)
  const jti = `session-${String(number).padStart(35, '0')}`
  await new provider.Session({ jti, accountId, loginTs, authorizations }).save(14 * DAY)
}

const escaped = (value) => value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const page = async (request, response) => {
  const { uid, params } = await provider.interactionDetails(request, response)
  const { clientName } = await provider.Client.find(params.client_id)
  const body = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in</title></head><body><main>
<h1>Sign in</h1><p>to ${escaped(clientName)}</p><form method="post" action="/interaction/${escaped(uid)}">
<label for="username">Name</label><input id="username" name="username" value="${escaped(params.login_hint ?? '')}">
<label for="password">Password</label><input id="password" name="password" type="password">
<button>Sign in</button></form></main></body></html>`
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }).end(body)
}

const signIn = async (request, response) => {
  const form = new URLSearchParams(await text(request))
  if (!(await verify(settings.hash, form.get('password')))) {
    response.writeHead(403).end()
    return
  }
  await provider.interactionFinished(request, response, { login: { accountId: form.get('username') } })
}

const answer = provider.callback()
const server = createServer(async (request, response) => {
  if (!request.url.startsWith('/interaction/')) {
    answer(request, response)
    return
  }
  try {
    await (request.method === 'POST' ? signIn : page)(request, response)
  } catch (error) {
    console.error(error)
    response.writeHead(500).end()
  }
})
provider.on('server_error', (ctx, error) => console.error(error))
server.keepAliveTimeout = 60_000
server.listen(settings.port, '127.0.0.1')

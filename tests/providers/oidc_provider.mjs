// oidc-provider (npm), with the pages that it has for developers: any name and password sign in, and then it asks for consent.

import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'
import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js'
import { base } from '../browser/api.mjs'
import { either } from './pages.mjs'
import { ada, alan, claimsOf } from './people.mjs'
import { listenAnywhere } from './ports.mjs'

const known = new Map([ada, alan].map((person) => [person.sub, person]))

/** What its memory adapter keeps things in. */
const kept = new Map()
const storage = {
  get: (name) => kept.get(name),
  set: (name, value) => kept.set(name, value),
  delete: (name) => kept.delete(name),
}

/** A public key on a curve, whose id is its thumbprint (RFC 7638). */
function withThumbprint({ crv, kty, x, y }) {
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
  return { crv, kty, x, y, kid, use: 'sig', alg: 'ES256' }
}

/** Starts it behind a proxy, with a client that has a secret and one that has the key of a certificate, each with its callback. */
export async function start(proxy, callbacks, certificate) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const client = (id, method, more) => ({
    client_id: id, client_name: 'Chancery', redirect_uris: [callbacks[id]], post_logout_redirect_uris: [`${base}/signin/signedout`], response_types: ['code'],
    grant_types: ['authorization_code'], token_endpoint_auth_method: method, ...more,
  })
  const key = withThumbprint(createPublicKey(certificate).export({ format: 'jwk' }))
  const provider = new Provider(proxy.issuer, {
    adapter: (model) => new MemoryAdapter(model, storage),
    clients: [
      client('secret', 'client_secret_basic', { client_secret: 'a secret: of % signs + others' }),
      client('key', 'private_key_jwt', { jwks: { keys: [key] }, token_endpoint_auth_signing_alg: 'ES256' }),
    ],
    claims: { openid: ['sub'], profile: ['given_name', 'family_name', 'name', 'groups'], email: ['email', 'email_verified'] },
    cookies: { keys: ['a key for checks alone'] },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId, ...claimsOf(known.get(accountId)) }) }),
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' }] },
  })
  // the client is told no more than that it failed
  provider.on('grant.error', (_, error) => console.error('oidc-provider:', error.error_detail ?? error.message))
  provider.on('server_error', (_, error) => console.error(error))
  const server = createServer(provider.callback())
  proxy.target = await listenAnywhere(server)
  const settings = { tellsAuthTime: true, signIn: signIn(proxy.issuer), cancel, makeOlder, signOut, asksAgain }
  return {
    close: () => server.close(),
    bySecret: { ...settings, options: { ClientId: 'secret', ClientSecret: 'a secret: of % signs + others' } },
    byKey: { ...settings, options: { ClientId: 'key' } },
  }
}

/** Signs somebody in at its pages. */
const signIn = (issuer) => async (page, person) => {
  await page.fill('[name=login]', person.sub)
  await page.fill('[name=password]', 'any')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  const consent = page.getByRole('button', { name: 'Continue', exact: true })
  const isLeft = await either(page.waitForURL((url) => !url.href.startsWith(issuer)).then(() => true), consent.waitFor())
  if (!isLeft) await consent.click()
}

/** Confirms the sign-out on its page. */
const signOut = (page) => page.getByRole('button', { name: 'Yes, sign me out' }).click()
const asksAgain = (page) => page.locator('[name=login]').waitFor()

const cancel = (page) => page.getByRole('link', { name: 'Cancel' }).click()

/** Lets all sessions there have begun earlier, by seconds. */
function makeOlder(seconds) {
  for (const [name, session] of kept) {
    if (name.startsWith('Session:') && session.loginTs) session.loginTs -= seconds
  }
}

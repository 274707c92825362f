// Stand-ins for Google, Microsoft, Facebook, Twitter and an AD FS, all at one address: each with a sign-in page, and as strict about
// codes, secrets and proofs as the original. Google asks for consent, and knows only registered redirect addresses. Their responses
// follow the documentation of the originals.

import { createHash, createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { ada, alan, claimsOf } from './people.mjs'
import { listenAnywhere } from './ports.mjs'

const people = new Map([ada, alan].map((person) => [person.sub, person]))
const ORGANISATION = '5b1c0b04-3a86-4a59-9a40-33c14bb3c8de'
const RESOURCE = 'https://id.example/'
export const options = { ClientId: 'chancery', ClientSecret: 'quiet' }
/** The options of an instance for the AD FS. */
export const adfsOptions = (origin) => ({ Authority: `${origin}/adfs`, RequestResources: RESOURCE })

const base64 = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function signed(header, claims, key) {
  const text = `${base64({ alg: 'RS256', ...header })}.${base64(claims)}`
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')}`
}

const PAGE = `<!doctype html><html lang="en"><title>Who are you?</title>
<form method="post"><label>Account <input name="account"></label><button>Continue</button></form>`

/** The words of Google's page for an address that is not registered. */
export const MISMATCH = 'Error 400: redirect_uri_mismatch'
const UNREGISTERED = `<!doctype html><html lang="en"><title>Error 400</title><h1>Access blocked: this request is invalid</h1><p>${MISMATCH}`
/** Google's page of consent for a person. */
const consentOf = ({ sub, name }) => `<!doctype html><html lang="en"><title>Allow access?</title><h1>Allow access?</h1>
<p>The app gets the name and the address of ${name}.<form method="post"><input type="hidden" name="account" value="${sub}">
<button name="decision" value="allow">Allow</button> <button name="decision" value="cancel">Cancel</button></form>`

/** Signs a person in on the page. */
export async function signIn(page, person) {
  await page.getByLabel('Account').fill(person.sub)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
}

/** Signs a person in at Google, who consents or cancels. */
export async function signInAtGoogle(page, person, decision = 'Allow') {
  await signIn(page, person)
  await page.getByRole('button', { name: decision, exact: true }).click()
}

/** Whether the client authenticates by its secret: in the form, or else in the header. */
function isProven({ headers }, form, isPosted) {
  const { ClientId, ClientSecret } = options
  if (isPosted) return form.get('client_id') === ClientId && form.get('client_secret') === ClientSecret
  return headers.authorization === `Basic ${Buffer.from(`${ClientId}:${ClientSecret}`).toString('base64')}`
}

/** Starts them at this address; an AD FS signs by this key. */
export async function start(origin, adfsKey) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const [codes, tokens, registered] = [new Map(), new Map(), new Set()]
  const seconds = () => Math.floor(Date.now() / 1000)

  const document = (path, issuer) => ({
    issuer, authorization_endpoint: `${origin}${path}/authorize`, token_endpoint: `${origin}${path}/token`,
    jwks_uri: `${origin}/keys`, userinfo_endpoint: `${origin}/userinfo`, response_types_supported: ['code'],
    scopes_supported: ['openid', 'profile', 'email'], token_endpoint_auth_methods_supported: ['client_secret_basic'],
    code_challenge_methods_supported: ['S256'], id_token_signing_alg_values_supported: ['RS256'],
  })
  const idToken = (issuer, more = {}) => ({ person, asked }) => {
    const claims = { iss: issuer, sub: person.sub, aud: asked.get('client_id'), iat: seconds(), exp: seconds() + 300, nonce: asked.get('nonce') }
    return { id_token: signed({ kid: 'k' }, { ...claims, ...claimsOf(person), ...more }, privateKey) }
  }
  const adfsToken = ({ person, asked }) => {
    const { given_name, family_name, email } = claimsOf(person)
    const claims = { aud: asked.get('resource'), iss: `${origin}/adfs/services/trust`, iat: seconds(), exp: seconds() + 300, appid: asked.get('client_id') }
    return { access_token: signed({ typ: 'JWT' }, { ...claims, upn: person.sub, given_name, family_name, email }, adfsKey) }
  }

  const pages = ['/google/authorize', '/microsoft/authorize', '/dialog/oauth', '/i/oauth2/authorize', '/adfs/oauth2/authorize']
  /** The token endpoints: whether the secret is in the form, and the members of the response. */
  const redeeming = {
    '/google/token': [false, idToken(origin)],
    '/microsoft/token': [false, idToken(`${origin}/${ORGANISATION}/v2.0`, { tid: ORGANISATION })],
    '/oauth/access_token': [true, () => ({})],
    '/2/oauth2/token': [false, () => ({})],
    '/adfs/oauth2/token': [true, adfsToken],
  }
  function redeem(path, request, form) {
    const [isPosted, told] = redeeming[path]
    if (!isProven(request, form, isPosted)) return [401, { error: 'invalid_client' }]
    const code = codes.get(form.get('code'))
    codes.delete(form.get('code'))
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url')
    const isRight = code?.asked.get('code_challenge') === challenge && code.asked.get('redirect_uri') === form.get('redirect_uri')
    if (!isRight) return [400, { error: 'invalid_grant' }]
    const access_token = randomBytes(16).toString('hex')
    tokens.set(access_token, code.person)
    return [200, { access_token, token_type: 'bearer', expires_in: 300, ...told(code) }]
  }

  const bearer = ({ headers }) => headers.authorization?.replace(/^Bearer /, '')
  const profiles = {
    '/userinfo': (person) => ({ sub: person.sub, ...claimsOf(person) }),
    '/me': ({ sub, firstName, lastName, name, email }, { searchParams }, token) => {
      const proof = createHmac('sha256', options.ClientSecret).update(token).digest('hex')
      const picture = { data: { url: 'https://pictures.example/person' } }
      return searchParams.get('appsecret_proof') === proof && { id: sub, first_name: firstName, last_name: lastName, name, email, picture }
    },
    '/2/users/me': ({ sub, name }) => ({ data: { id: sub, name, username: sub } }),
  }
  function answer(request, url, form) {
    const path = url.pathname
    if (path === '/.well-known/openid-configuration') return [200, document('/google', origin)]
    if (path === '/common/v2.0/.well-known/openid-configuration') return [200, document('/microsoft', `${origin}/{tenantid}/v2.0`)]
    if (path === '/keys') return [200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'RS256' }] }]
    if (redeeming[path]) return redeem(path, request, form)
    const person = profiles[path] && tokens.get(bearer(request))
    const told = person && profiles[path](person, url, bearer(request))
    return told ? [200, told] : [404, { error: 'nothing is here' }]
  }

  /** Redirects back to the server with the state and this parameter. */
  function leadBack(response, asked, [name, value]) {
    const back = new URL(asked.get('redirect_uri'))
    back.searchParams.set(name, value)
    back.searchParams.set('state', asked.get('state'))
    response.writeHead(303, { location: back.href }).end()
  }
  /** The parameter for a person who signed in on a page. */
  function codeOf(asked, person) {
    const code = randomBytes(16).toString('hex')
    codes.set(code, { asked, person })
    return ['code', code]
  }
  /** Answers a page: the sign-in, at Google after a check of the redirect address and before the consent. */
  function page(response, url, form) {
    const show = (status, html) => response.writeHead(status, { 'content-type': 'text/html' }).end(html)
    const [asked, isGoogle] = [url.searchParams, url.pathname.startsWith('/google/')]
    if (isGoogle && !registered.has(asked.get('redirect_uri'))) return show(400, UNREGISTERED)
    const person = people.get(form.get('account'))
    if (!person) return show(200, PAGE)
    if (isGoogle && !form.has('decision')) return show(200, consentOf(person))
    const isDenied = isGoogle && form.get('decision') !== 'allow'
    return leadBack(response, asked, isDenied ? ['error', 'access_denied'] : codeOf(asked, person))
  }
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, origin)
    let body = ''
    for await (const part of request) body += part
    const form = new URLSearchParams(body)
    if (pages.includes(url.pathname)) return page(response, url, form)
    const [status, json] = answer(request, url, form)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  })
  await listenAnywhere(server, Number(new URL(origin).port))
  return { registerAtGoogle: (address) => registered.add(address), close: () => server.close() }
}

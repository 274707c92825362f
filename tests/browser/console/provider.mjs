// Trying a provider out, by a stand-in of another site: to it, back, and what came back; without script in English, with it
// in German.

import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { underAxe } from '../sign_in/look.mjs'

const management = '/api/management/v2'
const one = async (path, condition) => {
  const filter = condition === undefined ? '' : `?filter=${encodeURIComponent(condition)}`
  return (await call('GET', `${management}/${path}${filter}`, undefined, 200))[0]
}
const encoded = (json) => Buffer.from(JSON.stringify(json)).toString('base64url')

/** An OpenID provider where everybody is Ada. It serves whom `audience` names. */
async function provider(audience) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const state = { audience }
  let asked
  const idToken = (issuer) => {
    const now = Math.floor(Date.now() / 1000)
    const hash = createHash('sha256').update('access').digest().subarray(0, 16).toString('base64url')
    const claims = { iss: issuer, sub: 'ada', aud: state.audience, iat: now, exp: now + 300, nonce: asked.get('nonce'), at_hash: hash }
    const signed = `${encoded({ alg: 'ES256', kid: 'k' })}.${encoded(claims)}`
    return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const server = createServer((request, response) => {
    const issuer = `http://127.0.0.1:${server.address().port}`
    const url = new URL(request.url, issuer)
    const tell = (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (url.pathname === '/.well-known/openid-configuration') {
      return tell({ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/userinfo` })
    }
    if (url.pathname === '/keys') return tell({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig' }] })
    if (url.pathname === '/token') return tell({ access_token: 'access', token_type: 'Bearer', id_token: idToken(issuer) })
    if (url.pathname === '/userinfo') return tell({ sub: 'ada', email: 'ada@provider.example' })
    // a browser asks for an icon, too
    if (url.pathname !== '/authorize') return response.writeHead(404).end()
    asked = url.searchParams
    const back = `${asked.get('redirect_uri')}?code=c&state=${asked.get('state')}`
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Provider</title><a id="ada" href="${back}">I am Ada</a>`)
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return { issuer: `http://127.0.0.1:${server.address().port}`, state, close: () => server.close() }
}

/** An instance that is set to a provider. */
async function instanceAt(issuer) {
  const { id: idpTypeId } = await one('IdpType', 'name eq "OpenIdConnect"'), { id: subscriptionId } = await one('Subscription')
  const instance = await call('POST', `${management}/IdpInstance`, { name: 'Partner', idpTypeId, subscriptionId }, 201)
  for (const [name, value] of [['Authority', issuer], ['ClientId', 'us'], ['ClientSecret', 'quiet']]) {
    const option = await one('Option', `applyToIdpInstanceId eq "${instance.id}" and name eq "${name}"`)
    await call('PATCH', `${management}/Option/${option.id}`, { value, concurrencyToken: option.concurrencyToken }, 202)
  }
  return `${base}/console/IdpInstance/${instance.id}`
}

/** From the button of an instance's page to what came back. Axe needs script. */
async function tried(page, item, axe) {
  const look = async (what) => axe && underAxe(page, what)
  await page.goto(item)
  await page.click('.acts a[href$="/trial"]')
  await page.click('main form button')
  await page.click('main a[href^="http://127.0.0.1"]')
  await page.click('#ada')
  await page.waitForURL(/\/trial\?/)
  await look('back from the provider')
  await page.click('main form button')
  await page.waitForSelector('.checks li')
  await look('what came back')
}

/** Tries it, right and wrong. */
export async function providerTried(opened) {
  const stand = await provider('us')
  const item = await instanceAt(stand.issuer)
  const { context, page } = await opened({ script: false })
  await tried(page, item, false)
  const told = await page.textContent('main')
  hold('all is right, and the claims came back', told.includes('All is right') && told.includes('ada@provider.example'), told)
  await context.close()
  stand.state.audience = 'them'
  const german = await opened({ lang: 'de' })
  await tried(german.page, item, true)
  const wrong = german.page.locator('.checks li.bad')
  hold('what is wrong is told', (await wrong.count()) === 1 && (await wrong.textContent()).includes('Für wen es ist (aud)'))
  hold('no page complains of the provider', german.complaints.length === 0, german.complaints.join('; '))
  await wrong.locator('a').click()
  await german.page.waitForURL(/settings#f-ClientId/)
  hold('and leads to its field', await german.page.locator('#f-ClientId').isVisible())
  await german.context.close()
  stand.close()
  return `${item.slice(base.length)}/trial`
}

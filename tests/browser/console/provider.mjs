// Connecting a provider and trying it out, by a stand-in of another site: from the gallery to the button of the sign-in, to the provider,
// back, and what came back; without script in English, with it in German.

import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { underAxe, violations } from '../sign_in/look.mjs'

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
  hold('all is right, and the claims came back', told.includes('All checks passed') && told.includes('ada@provider.example'), told)
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

/** Runs in the page: whether it is as wide as the window, and no wider. */
const fits = () => document.documentElement.scrollWidth <= document.documentElement.clientWidth

/** From the list to the trial: nothing is known but what the pages say. Axe needs script. The address of the instance. */
async function connected({ page, seen }, stand, name) {
  await page.goto(`${base}/console/IdpInstance`)
  await page.click('.acts a.main')
  await page.waitForURL(/connect$/)
  await seen('gallery')
  await page.click('.kinds a[href$="kind=OpenIdConnect"]')
  await page.fill('#f-name', name)
  await page.click('.bar button.main')
  await page.waitForURL(/step=address/)
  await seen('address')
  const item = page.url().split('/connect')[0]
  const address = (await page.textContent('main code')).trim()
  hold('the redirect address comes first', address === `${base}/external/${item.split('/').at(-1)}/callback`, address)
  await page.click('.acts a.main')
  await page.waitForURL(/step=access/)
  await seen('access')
  for (const [field, text] of [['Authority', stand.issuer], ['ClientId', 'us'], ['ClientSecret', 'quiet']]) await page.fill(`#f-${field}`, text)
  await page.click('.bar button.main')
  await page.waitForURL(/trial$/)
  await seen('trial')
  await page.click('main form button')
  await page.click('main a[href^="http://127.0.0.1"]')
  await page.click('#ada')
  await page.waitForURL(/trial[?]/)
  await page.click('main form button')
  await page.waitForSelector('.checks li')
  await seen('tried')
  await page.click('main a[href$="step=serve"]')
  await seen('serve')
  return item
}

/** Connects a provider, and leaves another one before its last step. The pages of that one. */
export async function providerConnected(opened, picture) {
  const stand = await provider('us')
  const { id: subscriptionId } = await one('Subscription')
  for (const name of ['Harbour Ledger', 'Staff portal']) {
    // an earlier part may have registered it
    if (!await one('ClientApp', `name eq "${name}"`)) await call('POST', `${management}/ClientApp`, { name, subscriptionId }, 201)
  }
  const plain = await opened({ script: false, width: 360 })
  const wide = []
  const item = await connected({ page: plain.page, seen: async (step) => { if (!await plain.page.evaluate(fits)) wide.push(step) } }, stand, 'Harbour')
  hold('every step fits a telephone', wide.length === 0, wide.join(', '))
  // without the console's, whose sign-in other parts use
  const ofConsole = 'f-app-636f6e73-6f6c-8000-8000-000000000001'
  for (const one of await plain.page.locator(`[role=switch]:not([id="${ofConsole}"])`).all()) await one.check()
  await plain.page.click('.bar button.main')
  await plain.page.waitForURL(/done=connected/)
  hold('the last step makes it active', (await plain.page.textContent('main')).includes('Users can sign in here'), item)
  await plain.context.close()
  const pictured = await opened({})
  await pictured.page.goto(`${base}/console/IdpInstance/connect`)
  await picture(pictured.page, 'connect-gallery')
  await pictured.page.click('.kinds a[href$="kind=Google"]')
  await pictured.page.click('.bar button.main')
  await pictured.page.waitForURL(/step=address/)
  await picture(pictured.page, 'connect-address')
  await pictured.page.click('.acts a.main')
  await pictured.page.waitForURL(/step=access/)
  await picture(pictured.page, 'connect-access')
  // that of the trial is of a stand-in for Google: tests/providers/console.mjs
  const shots = { serve: 'connect-serve' }
  await connected({ page: pictured.page, seen: async (step) => shots[step] && picture(pictured.page, shots[step]) }, stand, 'Staff accounts')
  await pictured.context.close()
  const german = await opened({ lang: 'de' })
  const found = []
  const seen = async (step) => found.push(...(await violations(german.page)).map((one) => `${step}: ${one}`))
  const left = await connected({ page: german.page, seen }, stand, 'Kontor')
  hold('every step, under axe', found.length === 0, found.join('; '))
  await german.page.goto(left)
  hold('who left goes on from its page', await german.page.locator('.acts a.main[href$="/connect"]').count() === 1)
  await german.page.locator('[data-later] li').first().waitFor()
  hold('who came by it comes after the page', (await german.page.textContent('main')).includes('noch niemand angemeldet'))
  hold('no step complains', german.complaints.length === 0, german.complaints.join('; '))
  await german.context.close()
  stand.close()
  const at = left.slice(base.length)
  return [at, `${at}/connect?step=address`, `${at}/connect?step=access`, `${at}/connect?step=serve`, `${at}/trial`, `${at}/people`, `${at}/sign-ins`]
}

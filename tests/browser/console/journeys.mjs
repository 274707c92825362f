// Journeys of who looks after applications and trust, each from its first click to its entry in the audit trail.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { another, signIn } from './endings.mjs'

const api = '/api/management/v2'
const note = (page) => page.locator('.note:not([data-ends]) output').waitFor()

/** Whether the last entry of the configuration's trail is about this; its page says so, too. */
async function inTrail(page, what) {
  await page.goto(`${base}/console/CustomAuditTrail`)
  const row = page.locator('tbody tr').first()
  const told = await row.textContent()
  await row.locator('th a').click()
  const isThere = told.includes(what) && (await page.locator('[data-proof]').count()) === 1
  return isThere || `the last entry is ${told.replace(/\s+/g, ' ')}`
}

/** A certificate of its own with its key, as PEM. */
function certificate() {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
  const [key, own] = ['key.pem', 'own.pem'].map((name) => join(folder, name))
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '3650', '-subj', '/CN=portal']
  execFileSync('openssl', [...words, '-keyout', key, '-out', own], { stdio: 'ignore' })
  return { own: readFileSync(own, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** 16: what a profile asks for leads to its fields, and is set when nothing is missing. */
async function safety(page) {
  const app = await call('POST', `${api}/ClientApp`, { name: 'Safe portal', allowUserLogin: true }, 201)
  await call('POST', `${api}/ClientAppRedirectUri`, { clientAppId: app.id, uri: 'https://safe.example/back', redirectUriType: 'Login' }, 201)
  await page.goto(`${base}/console/ClientApp/${app.id}`)
  await page.locator('a[href$="/safety"]').first().click()
  await page.locator('.views a[href$="profile=fapi2"]').click()
  await page.locator('li.warn a[href*="#f-requirePushedAuthorizationRequests"]').click()
  await page.check('#f-requirePushedAuthorizationRequests')
  await page.keyboard.press('Control+s')
  await note(page)
  await page.goto(`${base}/console/ClientApp/${app.id}/safety?profile=fapi2`)
  await page.locator('li.warn a[href*="ClientAppAuthenticationConfiguration/new"]').first().click()
  // what is not required is folded away
  for (const fold of await page.locator('details.folded:not([open]) > summary').all()) await fold.click()
  await page.selectOption('#f-tokenEndpointAuthMethod', 'private_key_jwt')
  await page.check('#f-dpopBoundAccessTokens')
  await page.keyboard.press('Control+s')
  await note(page)
  await page.goto(`${base}/console/ClientApp/${app.id}/safety?profile=fapi2`)
  await page.click('.finish .main')
  await page.getByText('Current profile: FAPI 2.0').waitFor()
  return inTrail(page, 'Safe portal')
}

/** 17: a new secret beside the old one, which then ends. */
async function rotation(page) {
  const app = await call('POST', `${api}/ClientApp`, { name: 'Rotating portal' }, 201)
  await call('POST', `${api}/ClientAppSecret`, { clientAppId: app.id, name: 'Winter' }, 201)
  await page.goto(`${base}/console/ClientApp/${app.id}`)
  await page.locator('a[href$="/rotation"]').first().click()
  await page.locator('a[href*="ClientAppSecret/new?clientAppId"]').first().click()
  await page.fill('#f-name', 'Spring')
  await page.keyboard.press('Control+s')
  await page.getByText('Store it now: it is not shown again.').waitFor()
  await page.goto(`${base}/console/ClientApp/${app.id}/rotation`)
  await page.locator('li', { hasText: 'Winter' }).locator('a[href*="/rotation/"]').click()
  await page.selectOption('#f-when', 'now')
  await page.keyboard.press('Control+s')
  await note(page)
  const isOver = (await page.locator('li.off', { hasText: 'Winter' }).count()) === 1
  return isOver && inTrail(page, 'Winter')
}

/** 18: a file is read before it is kept, and its page says what follows when it ends. */
async function certificates(page) {
  const { own, key } = certificate()
  await page.goto(`${base}/console/CertStore`)
  await page.locator('a[data-new], .empty .main').first().click()
  await page.fill('#f-name', 'portal signing')
  await page.selectOption('#f-certType', 'Default')
  await page.fill('#f-data', own)
  await page.fill('#f-privateKey', key)
  await page.keyboard.press('Control+s')
  await page.getByText('This certificate can be stored').waitFor()
  await page.locator('.bar .main, .finish .main').first().click()
  await page.waitForURL(/CertStore\/[0-9a-f-]{36}/)
  const told = await page.textContent('main')
  return told.includes('portal signing') && told.includes('Then the installation') && inTrail(page, 'portal signing')
}

/** 19: a rule is tried on a sample, which shows its path, and saved from there. */
async function claimRules(page) {
  await page.goto(`${base}/console/ClaimRule/new`)
  await page.fill('#f-name', 'no secrets')
  await page.selectOption('#f-ruleType', 'Remove')
  await page.selectOption('#f-ruleLevel', 'Subscription')
  await page.fill('#f-typeEvaluationRule', '^secret$')
  await page.keyboard.press('Control+s')
  await page.waitForURL(/ClaimRule\/[0-9a-f-]{36}/)
  const [tenant] = await call('GET', `${api}/Tenant`, undefined, 200)
  await page.goto(`${base}/console/ClaimRule`)
  await page.click('a[href="/console/ClaimRule/try"]')
  await page.fill('[role=combobox]#f-tenantId', tenant.id)
  await page.fill('#f-claims', '{"role": ["editor"], "secret": "x"}')
  await page.click('.bar .main')
  const told = await page.textContent('tbody')
  return told.includes('dropped') && told.includes('passed') && inTrail(page, 'no secrets')
}

/** 21: what a role adds is told before it is given, and why somebody may something after. */
async function rights(page, person) {
  await page.goto(`${base}/console/RoleAssignment/new`)
  await page.selectOption('#f-roleType', 'AuditTrailReader')
  await page.fill('[role=combobox]#f-principalId', person.id)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Control+s')
  await page.waitForLoadState()
  const before = await page.textContent('main')
  await page.locator('.finish .main').click()
  await note(page)
  await page.goto(`${base}/console/ApplicationUser/${person.id}/rights`)
  const why = await page.textContent('main')
  return /audit trail/i.test(before) && why.includes('because') && inTrail(page, 'AuditTrailReader')
}

/** 22: what another administrator requested is proven, approved and executed. */
async function replacement(page, person) {
  const [kind] = await call('GET', `${api}/IdpType?filter=${encodeURIComponent('name eq "OpenIdConnect"')}`, undefined, 200)
  const [home] = await call('GET', `${api}/Subscription?filter=${encodeURIComponent('name eq "Default"')}`, undefined, 200)
  const work = await call('POST', `${api}/IdpInstance`, { name: 'journeys at work', idpTypeId: kind.id, subscriptionId: home.id }, 201)
  const body = { platformUserId: person.id, replacementIdpInstanceId: work.id, replacementUniqueUserId: 'at-work', reason: 'Lost her telephone' }
  const made = await call('POST', `${api}/identity-replacements`, body, 201)
  await page.goto(`${base}/console/IdentityReplacement?view=open`)
  await page.click(`a[href$="/IdentityReplacement/${made.id}"]`)
  for (let proven = 0; proven < 2; proven++) {
    await page.locator('form[action$="/ProveReplacementIdentity"] button').first().click()
    await note(page)
    await page.goto(`${base}/console/IdentityReplacement/${made.id}`)
  }
  for (const act of ['Approve', 'Execute']) {
    await page.click(`a[href$="/${act}"]`)
    await page.locator('.finish .main, .bar .main').first().click()
    await note(page)
  }
  return (await page.textContent('main')).includes('The identity was replaced') && inTrail(page, 'dentity')
}

/** 27: each line of health is told, and leads to its remedy. */
async function health(page) {
  await page.goto(`${base}/console`)
  await page.locator('.places a[href="/console/health"]').click()
  const told = await page.textContent('main')
  return told.includes('It accepts requests, and the database answers.') && (await page.locator('main .checks li').count()) > 10
}

/** 29: another's session is found and ended; they are asked to sign in again. */
async function sessions(page, { page: theirs, person, loginName }) {
  await theirs.goto(`${base}/console/Tenant`)
  await signIn(theirs, loginName)
  await theirs.waitForURL(`${base}/console/Tenant`)
  await page.goto(`${base}/console/SignInSession?view=live&of=platformUserId:${person.id}`)
  await page.locator('tbody th a').first().click()
  await page.click('a[href$="/delete"]')
  await page.locator('.finish .main').click()
  await note(page)
  await theirs.goto(`${base}/console/Tenant`)
  return (await theirs.locator('#password').count()) === 1
}

/** All of them. */
export async function journeys(opened) {
  const { context, page, complaints } = await opened({})
  const other = await another(opened, 'journeys')
  const all = [['16 raise its safety', safety], ['17 rotate keys', rotation], ['18 certificates', certificates], ['19 claim rules', claimRules],
    ['21 who may what', rights], ['27 is it well', health], ['29 sessions', sessions], ['22 an identity is replaced', replacement]]
  for (const [what, run] of all) {
    const given = run === sessions ? other : other.person
    const done = await run(page, given).catch((error) => error.message.split('\n')[0])
    hold(`from the first click to the trail: ${what}`, done === true, `${done} (${page.url()})`)
  }
  hold('no page complains of these journeys', complaints.length === 0, complaints.join('; '))
  await context.close()
  await other.context.close()
}

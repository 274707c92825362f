// An entry of the audit trail, proven by the browser: what was signed is found good, and whatever was changed since is
// found, be it a letter of the page, of the entry, of its place or of the keys.

import { generateKeyPairSync, sign } from 'node:crypto'
import { administration, base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'

const CHECKS = ['contents', 'key', 'signature', 'place', 'checkpoint']
const STAMP = ['action', 'area', 'category', 'currentDigest', 'dataSource', 'id', 'originalDigest', 'primaryKey', 'timestamp', 'user']

/** The same with another letter near its end. */
const changed = (text) => text.slice(0, -5) + (text.at(-5) === 'A' ? 'B' : 'A') + text.slice(-4)
const set = (object, member, value) => { object[member] = value }

/** What is changed on the way to the browser, and the checks that find it. */
const CHANGES = [
  ['a letter of who did it', ({ entry }) => set(entry, 'user', changed(entry.user)), ['signature', 'place']],
  ['a letter of when', ({ entry }) => set(entry, 'timestamp', entry.timestamp.replace(/^2/, '1')), ['signature', 'place']],
  ['a letter of the contents', ({ entry }) => set(entry, 'currentContent', changed(entry.currentContent)), ['contents']],
  ['contents without their salt', ({ entry }) => set(entry, 'currentSalt', null), ['contents']],
  ['a digest', ({ entry }) => set(entry, 'currentDigest', entry.originalDigest), ['contents', 'signature', 'place']],
  ['another person', ({ entry }) => set(entry, 'person', '01a20844-57b6-7003-81dd-dc602f28d82d'), ['place']],
  ['the signature', ({ entry }) => set(entry, 'signature', changed(entry.signature)), ['signature', 'place']],
  ['a key of somebody else', ({ entry }) => set(entry, 'signaturePublicKeyInfo', changed(entry.signaturePublicKeyInfo)), ['key', 'signature', 'place']],
  ['the place', ({ place }) => set(place, 'position', place.position - 1), ['place']],
  ['a hash of the proof', ({ place }) => set(place.hashes, 0, changed(place.hashes[0])), ['place']],
  ['a hash more', ({ place }) => place.hashes.push(place.hashes[0]), ['place']],
  ['the root of the tree', ({ place }) => set(place, 'checkpoint', place.checkpoint.replace(/\n(.)([^\n]{43})\n/, (_, one, rest) => `\n${one === 'A' ? 'B' : 'A'}${rest}\n`)), ['place', 'checkpoint']],
  ['the name of the tree', ({ place }) => set(place, 'checkpoint', place.checkpoint.replace('chancery', 'chancerx')), ['checkpoint']],
  ['a checkpoint that nobody signed', ({ place }) => set(place, 'checkpoint', place.checkpoint.replace(/— .*\n$/, '')), ['checkpoint']],
]

const card = (page) => page.locator('[data-proof]')
/** The checks that found something. */
async function found(page) {
  await page.waitForSelector('[data-proof].told:not(.warn)')
  const bad = await page.locator('[data-check].bad').evaluateAll((all) => all.map((one) => one.dataset.check))
  return bad.join()
}

/** Opens the entry, changed on its way. */
async function opened(page, path, change) {
  await page.unrouteAll()
  await page.route('**/CustomAuditTrail/*/proof', async (route) => {
    const answer = await route.fetch(), told = await answer.json()
    change(told)
    await route.fulfill({ response: answer, json: told })
  })
  await page.goto(base + path)
}

/** The address of the newest entry that meets a condition. */
async function newest(condition) {
  const query = `filter=${encodeURIComponent(condition)}&sortOrder=descending&count=1`
  const [entry] = await call('GET', `${administration}/CustomAuditTrail?${query}`, undefined, 200)
  return `/console/store/default/CustomAuditTrail/${entry.id}`
}

/** Keys of certificates sign, too: the browser knows both kinds. */
async function otherKeys(page, path) {
  const pairs = { 'P-256': ['ec', { namedCurve: 'P-256' }], RSA: ['rsa', { modulusLength: 2048 }] }
  for (const [kind, [type, options]] of Object.entries(pairs)) {
    const { publicKey, privateKey } = generateKeyPairSync(type, options)
    await opened(page, path, ({ entry }) => {
      const message = JSON.stringify(Object.fromEntries(STAMP.map((name) => [name, entry[name]])))
      entry.signature = sign('sha256', Buffer.from(message), privateKey).toString('base64')
      entry.signaturePublicKeyInfo = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    })
    await page.route('**/audit-keys.json', async (route) => {
      const answer = await route.fetch(), { keys } = await answer.json()
      await route.fulfill({ response: answer, json: { keys: [...keys, { ...publicKey.export({ format: 'jwk' }), kid: 'x' }] } })
    })
    await page.goto(base + path)
    hold(`a signature by a key of kind ${kind} is checked`, (await found(page)) === 'place', await found(page))
  }
}

/** The trail, proven; `open` makes a page in a context of its own. */
export async function trail(open) {
  const { context, page, complaints } = await open({})
  const user = await call('POST', `${administration}/User`, { loginName: 'countess', nickname: 'Ada' }, 201)
  await call('PATCH', `${administration}/User/${user.id}`, { nickname: 'Countess', concurrencyToken: user.concurrencyToken }, 202)
  const path = await newest(`primaryKey eq "${user.id}"`)
  await page.goto(base + path)
  hold('an entry is proven by the browser', (await found(page)) === '' && (await page.locator('[data-check].good').count()) === CHECKS.length)
  hold('it says where in the tree', /\d/.test(await card(page).locator('[role=status]').textContent()))
  for (const [what, change, expected] of CHANGES) {
    await opened(page, path, change)
    const bad = await found(page)
    hold(`${what}: the change is found`, bad === expected.join() && (await card(page).getAttribute('class')).includes('bad'), bad)
  }
  await page.unrouteAll()
  await page.route(`**${path}`, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, body: (await answer.text()).replaceAll('Countess', 'Countesz') })
  })
  await page.goto(base + path)
  hold('a letter of the page itself: the change is found', (await found(page)) === 'contents', await found(page))
  await page.unrouteAll()
  await page.route('**/audit-keys.json', (route) => route.fulfill({ json: { keys: [] } }))
  await page.goto(base + path)
  hold('without the keys nothing is vouched for', (await found(page)) === 'key,signature,checkpoint', await found(page))
  await otherKeys(page, path)
  let asked = 0
  await opened(page, path, (told) => { if ((asked += 1) === 1) told.place = null })
  await page.waitForSelector('[data-check=place].wait')
  hold('an entry that is not in the tree yet waits, and is proven', (await found(page)) === '')
  await page.unrouteAll()
  await call('POST', `${administration}/User/${user.id}/erase`, undefined, 204)
  await page.goto(base + path)
  hold('erased contents say so', (await found(page)) === '' && (await page.locator('[data-check=contents].warn').count()) === 1)
  hold('no page of the proof complains', complaints.length === 0, complaints.join('; '))
  await context.close()
  const plain = await open({ script: false })
  await plain.page.goto(base + path)
  const text = await plain.page.textContent('main')
  hold('without script the other way stands there', text.includes('Without scripts') && text.includes('chancery audit verify'))
  await plain.context.close()
}

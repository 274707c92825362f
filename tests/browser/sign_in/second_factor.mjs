// A second factor on the pages: an authenticator is enrolled, asked for, spared, and replaced by a recovery code. Codes and
// pictures are made and read by foreign libraries.

import jsqr from 'jsqr'
import * as OTPAuth from 'otpauth'
import { base } from '../api.mjs'
import { PASSWORD, makePerson, request } from './home.mjs'
import { press, refusalFaults, says, text, travels, unless } from './journey.mjs'
import { enter, focusOn, tabThrough, tabTo } from './keys.mjs'

const STEP = 30_000
const WORDS = {
  en: { submit: 'Confirm', recovery: 'I use a recovery code', cancel: 'Cancel' },
  de: { submit: 'Bestätigen', recovery: 'Ich nehme einen Notfallcode', cancel: 'Abbrechen' },
}
/** Too long for a code: whatever the right one is, this is wrong. */
const WRONG = '1234567'

/** Runs in the page: draws its picture on white; which pixels are dark, and how many a side has. */
async function draw() {
  const svg = document.querySelector('svg.qr').cloneNode(true)
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const [, , cells] = svg.getAttribute('viewBox').split(' ').map(Number)
  const side = cells * 4
  svg.setAttribute('width', side)
  svg.setAttribute('height', side)
  const image = new Image()
  image.src = `data:image/svg+xml,${encodeURIComponent(svg.outerHTML)}`
  await image.decode()
  const context = Object.assign(document.createElement('canvas'), { width: side, height: side }).getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, side, side)
  context.drawImage(image, 0, 0)
  const { data } = context.getImageData(0, 0, side, side)
  let pixels = ''
  for (let at = 0; at < data.length; at += 4) pixels += data[at] < 128 ? '1' : '0'
  return { side, pixels }
}

/** Sets an authenticator app up by the page's picture. */
async function scan(page) {
  const { side, pixels } = await page.evaluate(draw)
  const shades = Uint8ClampedArray.from([...pixels].flatMap((one) => (one === '1' ? [0, 0, 0, 255] : [255, 255, 255, 255])))
  const found = jsqr(shades, side, side)
  if (!found) throw new Error('the picture cannot be read')
  return { address: found.data, app: OTPAuth.URI.parse(found.data) }
}

async function type(visitor, code) {
  await visitor.page.fill('#code', code)
  await press(visitor, 'button.main')
}

async function signIn(visitor, app, name) {
  await visitor.context.clearCookies()
  const one = request(app)
  await visitor.page.goto(one.address)
  await visitor.signIn(name)
  return one
}

/** Enrols an authenticator; it, and the recovery codes. */
async function enrol(visitor, app, name) {
  const one = await signIn(visitor, app, name)
  const { app: authenticator } = await scan(visitor.page)
  await type(visitor, authenticator.generate())
  const codes = await visitor.page.locator('.codes li').allInnerTexts()
  await press(visitor, 'button.main')
  await visitor.arrived(one)
  return { authenticator, codes }
}

async function enrols(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`otto-${visitor.language}`)
  const declined = await signIn(visitor, apps.guarded, name)
  await visitor.press(page.getByRole('button', { name: WORDS[visitor.language].cancel }))
  stop.prove('who enrols nothing is back at the app', (await visitor.arrived(declined)).get('error') === 'access_denied')
  const one = await signIn(visitor, apps.guarded, name)
  const { address, app } = await scan(page)
  const secret = (await text(visitor, '.secret')).replaceAll(/\s/g, '')
  const link = await page.locator('a[href^="otpauth:"]').getAttribute('href')
  await stop('the page that enrols an authenticator', [
    ...unless(address === link, `the picture says ${address}, and the link ${link}`),
    ...unless(app instanceof OTPAuth.TOTP && app.secret.base32 === secret, `the text says ${secret}, and the picture ${app.secret.base32}`),
    ...unless(app.label === name && app.issuer !== '', `the app would show ${app.issuer}: ${app.label}`),
  ])
  await type(visitor, WRONG)
  const kept = (await scan(page)).address === address
  await stop('a wrong first code', [...unless(kept, 'it shows another secret'), ...(await refusalFaults(visitor, ['code']))])
  await type(visitor, app.generate())
  const codes = await page.locator('.codes li').allInnerTexts()
  const marked = await page.locator('.codes').evaluate((list) => {
    getSelection().selectAllChildren(list)
    return getSelection().toString().trim().split(/\s*\n\s*/)
  })
  await stop('the recovery codes', [
    ...unless(codes.length === 10 && new Set(codes).size === 10, `there are ${codes}`),
    ...unless(marked.join() === codes.join(), `what is copied of them is ${marked}`),
  ])
  await press(visitor, 'button.main')
  stop.prove('an authenticator is enrolled', (await visitor.arrived(one)).has('code'))
}

async function isAsked(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`vera-${visitor.language}`)
  const { authenticator, codes } = await enrol(visitor, apps.guarded, name)
  const first = await signIn(visitor, apps.guarded, name)
  await stop('the page of a second factor', unless((await page.locator('#remember').count()) === 1, 'it does not offer to remember'))
  await type(visitor, WRONG)
  await stop('a wrong code', await refusalFaults(visitor, ['code']))
  // the code of now was used to enrol
  await page.fill('#code', authenticator.generate({ timestamp: Date.now() + STEP }))
  await page.check('#remember')
  await press(visitor, 'button.main')
  stop.prove('a code of the authenticator signs in', (await visitor.arrived(first)).has('code'))
  await visitor.context.clearCookies({ name: /session$/ })
  const spared = request(apps.guarded)
  await page.goto(spared.address)
  await visitor.signIn(name)
  stop.prove('a browser that is remembered is spared the code', (await visitor.arrived(spared)).has('code'))

  const second = await signIn(visitor, apps.guarded, name)
  await visitor.press(page.getByRole('button', { name: WORDS[visitor.language].recovery }))
  await stop('the page of a recovery code', await says(visitor, '.lead', visitor.language === 'de' ? 'Notfallcodes' : 'recovery codes'))
  await type(visitor, 'AAAA')
  await stop('a wrong recovery code', await refusalFaults(visitor, ['code']))
  await type(visitor, codes[4].toLowerCase())
  stop.prove('a recovery code signs in', (await visitor.arrived(second)).has('code'))
  const third = await signIn(visitor, apps.guarded, name)
  await visitor.press(page.getByRole('button', { name: WORDS[visitor.language].cancel }))
  stop.prove('who goes no further is back at the app', (await visitor.arrived(third)).get('error') === 'access_denied')
}

async function confirmsByKeyboard(visitor, { apps }, stop) {
  const { page } = visitor
  const words = WORDS[visitor.language]
  const name = await makePerson(`walt-${visitor.language}`)
  const { authenticator, codes } = await enrol(visitor, apps.guarded, name)
  const begin = async () => {
    await visitor.context.clearCookies()
    const one = request(apps.guarded)
    await page.goto(one.address)
    await focusOn(page, 'username')
    await page.keyboard.type(name)
    await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await enter(page)
    await focusOn(page, 'code')
    return one
  }
  const first = await begin()
  const { names, faults } = await tabThrough(page)
  const wanted = ['code', 'remember', words.submit, words.recovery, words.cancel, 'English', 'Deutsch']
  const all = [...faults, ...unless(names.join() === wanted.join(), `the focus goes to ${names}`)]
  stop.prove('by keyboard: the page of a second factor: the focus is seen, from top to bottom', all.length === 0, all.join('; '))
  await tabTo(page, 'code')
  await page.keyboard.type(authenticator.generate({ timestamp: Date.now() + STEP }))
  await enter(page)
  stop.prove('by keyboard: a code of the authenticator', (await visitor.arrived(first)).has('code'))
  const second = await begin()
  await tabTo(page, words.recovery)
  await enter(page, 'Space')
  await focusOn(page, 'code')
  await page.keyboard.type(codes[0])
  await enter(page)
  stop.prove('by keyboard: a recovery code', (await visitor.arrived(second)).has('code'))
}

/** What people do with an authenticator, as cases. */
export const secondFactorCases = (browser, home, hold) => travels(browser, home, hold, [enrols, isAsked, confirmsByKeyboard])

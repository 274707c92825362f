// What is due before a sign-in ends, and a forgotten password: terms, codes and links by mail.

import { base } from '../api.mjs'
import { PASSWORD, makePerson, request } from './home.mjs'
import { press, refusalFaults, says, travels, unless } from './journey.mjs'

const FORGOTTEN = { en: 'Forgot your password?', de: 'Kennwort vergessen?' }
const NEW = 'five quiet brown owls'
const alertFaults = async ({ page }) => unless((await page.locator('.problems[role=alert] li').count()) > 0, 'it has no alert')

async function accepts(visitor, { apps, site }, stop) {
  const { page } = visitor
  const name = await makePerson(`xena-${visitor.language}`)
  const begin = async () => {
    const one = request(apps.binding)
    await page.goto(one.address)
    await visitor.signIn(name)
    return one
  }
  const first = await begin()
  const link = await page.locator('main a').getAttribute('href')
  await stop('the terms', [...(await says(visitor, '.lead', '2026-11')), ...unless(link === `${site.origin}/terms`, `its link leads to ${link}`)])
  await press(visitor, 'button:not(.main)')
  stop.prove('who does not accept goes back to the app', (await visitor.arrived(first)).get('error') === 'access_denied')
  const second = await begin()
  await press(visitor, 'button.main')
  stop.prove('who accepts goes on to it', (await visitor.arrived(second)).has('code'))
}

async function answers(visitor, { apps }, stop) {
  const { page } = visitor
  const name = await makePerson(`census-${visitor.language}`)
  const one = request(apps.asking)
  await page.goto(one.address)
  await visitor.signIn(name)
  const fields = page.locator('main input:not([type=hidden])')
  await stop('questions', unless((await fields.count()) === 3, `it has ${await fields.count()} fields`))
  await page.locator('main form').first().evaluate((form) => (form.noValidate = true))
  await page.fill('[autocomplete=tel]', '0170 1234567')
  await press(visitor, 'button.main')
  const wrong = await fields.evaluateAll((all) => all.filter((field) => field.ariaInvalid).map((field) => field.id))
  const kept = await page.inputValue('[autocomplete=tel]')
  await stop('answers that are wrong', [
    ...unless(wrong.length === 2, `${wrong.length} fields are wrong`),
    ...(await refusalFaults(visitor, wrong)),
    ...unless(kept === '0170 1234567', `what was typed is ${kept}`),
  ])
  await page.fill('[autocomplete=tel]', '+491701234567')
  await page.fill(`#${wrong[1]}`, 'Sales')
  await press(visitor, 'button.main')
  stop.prove('who answers goes on to the app', (await visitor.arrived(one)).has('code'))
}

/** Somebody whose address is not confirmed. */
async function unconfirmed(visitor, name) {
  const emailAddress = `${name}-${visitor.language}-${Date.now()}@example.com`
  return [await makePerson(`${name}-${visitor.language}`, { emailAddress }), emailAddress]
}

async function getsNoMail(visitor, { apps }, stop) {
  const [name] = await unconfirmed(visitor, 'yves')
  const one = request(apps.mailing)
  await visitor.page.goto(one.address)
  const forgotten = await visitor.page.getByRole('link', { name: FORGOTTEN[visitor.language] }).count()
  stop.prove('where no mail is sent no forgotten password is helped', forgotten === 0)
  await visitor.signIn(name)
  await stop('an address to confirm where no mail is sent', await alertFaults(visitor))
  await press(visitor, 'button.link')
  stop.prove('who is sent no code goes back to the app', (await visitor.arrived(one)).get('error') === 'access_denied')
}

async function confirms(visitor, { apps, mailbox }, stop) {
  const [name, address] = await unconfirmed(visitor, 'zoe')
  const one = request(apps.mailing)
  await visitor.page.goto(one.address)
  await visitor.signIn(name)
  await stop('an address to confirm', await says(visitor, '.lead', '@example.com'))
  await press(visitor, 'button:not(.main):not(.link)')
  await stop('another code asked for too soon', await alertFaults(visitor))
  await visitor.page.fill('#code', '1234567')
  await press(visitor, 'button.main')
  await stop('a wrong code of a mail', await refusalFaults(visitor, ['code']))
  const mail = await mailbox.next(address)
  await visitor.page.fill('#code', mail.match(/\b\d{6}\b/)[0])
  await press(visitor, 'button.main')
  stop.prove('the code of the mail leads to the app', (await visitor.arrived(one)).has('code'))
}

async function forgets(visitor, { apps, mailbox }, stop) {
  const { page } = visitor
  const [name, address] = await unconfirmed(visitor, 'finn')
  const one = request(apps.plain)
  await page.goto(one.address)
  const link = page.getByRole('link', { name: FORGOTTEN[visitor.language] })
  await stop('the password page with help for who forgot it', unless(await link.isVisible(), 'it has no link'))
  await visitor.press(link)
  await stop('a forgotten password')
  await page.locator('main form').evaluate((form) => (form.noValidate = true))
  await press(visitor, 'button.main')
  await stop('a forgotten password of nobody', await refusalFaults(visitor, ['username']))
  await page.fill('#username', name)
  await press(visitor, 'button.main')
  await stop('a link is sent')

  const [address_in_mail] = (await mailbox.next(address)).match(/https?:\/\/\S+/)
  await page.goto(address_in_mail)
  const account = await page.locator('input[autocomplete=username]').inputValue()
  await stop('a new password', [...(await says(visitor, 'main', name)), ...unless(account === name, `password managers would keep it for ${account}`)])
  await page.fill('#new_password', NEW)
  await page.fill('#repeated_password', PASSWORD)
  await press(visitor, 'button.main')
  await stop('a new password that differs', await refusalFaults(visitor, ['repeated_password']))
  await page.fill('#new_password', NEW)
  await page.fill('#repeated_password', NEW)
  await press(visitor, 'button.main')
  await stop('a password that is changed')
  await press(visitor, 'a.main')
  await visitor.signIn(name, NEW)
  stop.prove('the new password leads to the app where it began', (await visitor.arrived(one)).get('state') === one.state)
  await page.goto(address_in_mail)
  await stop('a link that was used', await alertFaults(visitor))
  stop.prove('its address names no secret', !page.url().includes('token'), new URL(page.url()).pathname)
}

/** What needs no mail server, as cases. */
export const dueCases = (browser, home, hold) => travels(browser, home, hold, [accepts, answers, getsNoMail])

/** What needs one, as cases. */
export const mailCases = (browser, home, hold) => travels(browser, home, hold, [confirms, forgets])

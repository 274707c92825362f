// A person signs in to a program that needs script, in Chromium. The program shows the person as JSON with name, groups and claims.

import { PATIENCE, launch } from './chromium.mjs'

const { site, inside, outside, landing, login, password, name, groups, ruledGroups, claims, endsSession } = JSON.parse(process.env.WALK)

function prove(what, holds, detail) {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(detail)}`)
  console.log(`ok ${what}`)
}

const browser = await launch()
const page = await (await browser.newContext()).newPage()
const said = []
page.on('console', (message) => said.push(message.text()))
page.on('pageerror', (error) => said.push(String(error)))

const isOurs = (address) => String(address).startsWith(`${site}/`)
const button = (text) => page.getByRole('button', { name: text, exact: true })
const passwordField = page.locator('[name=password]')
const offer = page.locator('[name=choice][value=later]')
/** The page that shows the person. */
const person = page.getByText(/^\{"name":/)

/** Asks for the page inside, and for the sign-in where the page has a button for it. */
async function begin() {
  if (!isOurs(page.url())) await page.goto(site + inside)
  await button('Sign in').or(passwordField).or(person).first().waitFor()
  if (await button('Sign in').count()) await button('Sign in').click()
}

async function typePassword() {
  await passwordField.waitFor()
  await page.fill('[name=username]', login)
  await page.fill('[name=password]', password)
  await passwordField.press('Enter')
  await offer.or(person).first().waitFor()
  if (await offer.count()) await offer.click()
}

async function shown() {
  await person.waitFor()
  const told = JSON.parse(await person.textContent())
  console.log(`shown ${JSON.stringify(told)}`)
  return told
}

try {
  await page.goto(site + inside)
  await begin()
  await typePassword()
  let told = await shown()
  prove('a person signs in', isOurs(page.url()), page.url())
  prove('the name is shown', told.name === name, told)
  prove('the groups arrive', JSON.stringify(told.groups?.toSorted()) === JSON.stringify(groups.toSorted()), told)
  for (const group of ruledGroups) prove(`the group ${group} of a rule arrives at the program`, told.groups.includes(group), told)
  for (const [claim, value] of Object.entries(claims)) {
    prove(`the claim ${claim} of a rule arrives at the program`, [told.claims[claim]].flat()[0] === value, told)
  }
  if (outside) await page.goto(site + outside)
  else await button('Sign out').click()
  if (landing) {
    await page.waitForURL((address) => String(address).split('?')[0] === site + landing)
    prove('the person is led back after the sign-out', true)
  }
  await person.waitFor({ state: 'detached' })
  prove('the person is signed out', true)
  if (endsSession) await button('Sign in').or(passwordField).first().waitFor()
  else await page.goto(site + inside)
  await begin()
  if (endsSession) await typePassword()
  told = await shown()
  prove(endsSession ? 'the password is asked for again, and the person comes back' : 'the person comes back without a password',
    isOurs(page.url()), page.url())
  prove('the name is shown again', told.name === name, told)
} catch (problem) {
  console.log(`${problem}\nat ${page.url()}: ${(await page.innerText('body', { timeout: PATIENCE })).slice(0, 2000)}\n${said.join('\n')}`)
  process.exitCode = 1
} finally {
  await browser.close()
}

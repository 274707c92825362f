// A person signs in to a page with oidc-client-ts, in Chromium.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { PATIENCE, launch } from './chromium.mjs'

const { ISSUER, CLIENT_ID, PORT, LOGIN, PASSWORD, NAME, GROUPS, CLAIMS } = process.env
const site = `http://localhost:${PORT}`

function prove(what, holds, detail) {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(detail)}`)
  console.log(`ok ${what}`)
}

const files = { '/library.js': ['text/javascript', 'library.js'] }
const server = createServer((request, answer) => {
  const path = request.url.split('?')[0]
  if (path === '/settings') {
    answer.setHeader('Content-Type', 'application/json')
    return answer.end(JSON.stringify({ authority: ISSUER, client_id: CLIENT_ID }))
  }
  const [type, file] = files[path] ?? ['text/html', 'page.html']
  answer.setHeader('Content-Type', type)
  return answer.end(readFileSync(new URL(file, import.meta.url)))
})
await new Promise((listening) => server.listen(Number(PORT), '127.0.0.1', listening))

const browser = await launch()
try {
  const page = await (await browser.newContext()).newPage()
  const said = []
  page.on('console', (message) => said.push(message.text()))
  page.on('pageerror', (error) => said.push(String(error)))
  const shown = async () => {
    await page.waitForFunction(() => document.getElementById('shown')?.textContent).catch((late) => {
      throw new Error(`${late}: ${page.url()} ${said.join('\n')}`)
    })
    return JSON.parse(await page.textContent('#shown'))
  }
  const comeIn = async () => {
    await page.click('#in')
    await page.fill('[name=username]', LOGIN)
    await page.fill('[name=password]', PASSWORD)
    await page.press('[name=password]', 'Enter')
    const offer = page.locator('[name=choice][value=later]')
    await Promise.race([page.waitForURL(`${site}/**`, { timeout: PATIENCE }), offer.waitFor()])
    if (await offer.count()) await offer.click()
    await page.waitForURL(`${site}/**`)
    return shown()
  }
  await page.goto(site)
  let told = await comeIn()
  prove('a person signs in', page.url().startsWith(`${site}/callback`), page.url())
  prove('the name is shown', told.name === NAME, told)
  prove('the groups arrive', JSON.stringify(told.groups?.toSorted()) === JSON.stringify(JSON.parse(GROUPS).toSorted()), told)
  for (const [name, value] of Object.entries(JSON.parse(CLAIMS))) {
    prove(`the claim ${name} of a rule arrives`, [told.claims[name]].flat()[0] === value, told)
  }
  await page.click('#out')
  await page.waitForURL(`${site}/bye`)
  prove('the person is led back after the sign-out', true)
  prove('the person is signed out', (await shown()).claims === null, await shown())
  told = await comeIn()
  prove('the password is asked for again, and the person comes back', told.name === NAME, told)
} finally {
  await browser.close()
  server.close()
}

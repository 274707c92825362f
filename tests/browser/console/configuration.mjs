// The configuration as documents: downloaded, changed, compared and applied, down to the entries of the trail.

import { readFile } from 'node:fs/promises'

import { base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { underAxe } from '../sign_in/look.mjs'
import { Hands } from './keyboard.mjs'

const here = `${base}/console/configuration`

/** What is there, in a file that was chosen beside another one. */
async function byFiles(opened, picture) {
  const { context, page, complaints } = await opened({})
  await page.goto(`${base}/console`)
  await page.click('a[href="/console/configuration"]')
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('a[download]')])
  const documents = JSON.parse(await readFile(await download.path(), 'utf8'))
  hold('what is there is downloaded', documents.some(({ kind }) => kind === 'Tenant'), documents.length)
  const east = [{ kind: 'Tenant', members: { name: 'East', subscriptionId: 'Default' } }]
  const shop = [{ kind: 'ClientApp', members: { name: 'Shop', tenants: ['East'] } }]
  const file = (name, json) => ({ name, mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(json)) })
  await page.setInputFiles('#f-file', [file('all.json', documents), file('east.json', east), file('shop.json', shop)])
  await page.locator('[data-check]:focus').waitFor()
  await page.keyboard.press('Enter')
  await page.locator('button[name=sure]').waitFor()
  const told = await page.textContent('main')
  hold('what differs comes first', told.includes('Tenant Default/Default/East') && told.includes('Apply: 2'), told)
  await underAxe(page, 'differences')
  await picture(page, 'configuration')
  await page.click('button[name=sure]')
  await page.waitForURL(/done=applied/)
  await page.goto(`${base}/console/CustomAuditTrail`)
  const trail = await page.textContent('tbody')
  hold('the trail has what was applied', trail.includes('Shop') && trail.includes('East'), trail)
  hold('configuration complains of nothing', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** By the keyboard alone, without script: refused first, then done. */
async function byKeyboard(opened) {
  const { context, page } = await opened({ script: false })
  const hands = new Hands(page, false)
  await page.goto(here)
  const document = (tenant) => JSON.stringify({ kind: 'ClientApp', members: { name: 'Shop', tenants: [tenant] } })
  await hands.type('#f-text', document('Nowhere'))
  await hands.go('button[data-check]')
  hold('what is wrong is told', (await page.textContent('tbody')).includes('names no Tenant'), await page.textContent('main'))
  await hands.type('#f-text', document('Default/Default/Default'))
  await hands.go('button[data-check]')
  hold('before and after', (await page.textContent('.diff')).includes('East'), await page.textContent('main'))
  await hands.go('button[name=sure]')
  hold('is applied', page.url().includes('done=applied'), page.url())
  await context.close()
}

/** The journey; what it made is deleted. */
export async function configuration(opened, picture) {
  await byFiles(opened, picture)
  await byKeyboard(opened)
  for (const [kind, name] of [['ClientApp', 'Shop'], ['Tenant', 'East']]) {
    const rows = await call('GET', `/api/management/v2/${kind}`, undefined, 200)
    await call('DELETE', `/api/management/v2/${kind}/${rows.find((row) => row.name === name).id}`, undefined, 204)
  }
}

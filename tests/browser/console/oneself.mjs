// Oneself: the zone in which times are read, and single letters that do nothing.

import { base } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'

/** Chooses a zone and turns single letters off, sees both at work, and takes them back. */
export async function oneself(opened) {
  const { context, page, complaints } = await opened({})
  const choose = async (zone, keys) => {
    await page.goto(`${base}/console/me`)
    await page.selectOption('#f-zone', zone)
    await page.selectOption('#f-single_keys', keys)
    await page.keyboard.press('Control+s')
    await page.waitForURL(/done=saved/)
  }
  await choose('Asia/Tokyo', 'off')
  hold('this browser is told', (await page.textContent('aside')).includes('This browser'))
  await page.goto(`${base}/console/CustomAuditTrail`)
  const title = await page.locator('tbody time').first().getAttribute('title')
  hold('times are in the zone that was chosen', /GMT\+9|Japan/.test(title), title)
  await page.goto(`${base}/console/store/default/User`)
  await page.keyboard.press('j')
  await page.keyboard.press('n')
  hold('single letters do nothing', page.url().endsWith('/User') && (await page.locator('tr.at').count()) === 0)
  await page.keyboard.press('Control+k')
  hold('keys with Ctrl still act', await page.locator('#palette').evaluate((one) => one.open))
  await choose('', '')
  await page.goto(`${base}/console/store/default/User`)
  await page.keyboard.press('n')
  await page.waitForURL('**/User/new')
  hold('and act again', true)
  hold('no page of oneself complains', complaints.length === 0, complaints.join('; '))
  await context.close()
}

// Pages that customers see: edited beside what becomes of them, published, and taken back by way of the trail.

import { base, call } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { underAxe } from '../sign_in/look.mjs'

const views = '/api/management/v2/CustomView'
const HEADING = '{% extends "Layout" %}{% block main %}<p>Welcome aboard</p>{% endblock %}'

const frame = (page) => page.frameLocator('iframe[name=preview]')

/** A tenant's brand is seen while it is typed, beside its options. */
async function brand(opened) {
  const { context, page, complaints } = await opened({})
  const [tenant] = await call('GET', '/api/management/v2/Tenant', undefined, 200)
  await page.goto(`${base}/console/Tenant/${tenant.id}/settings`)
  await frame(page).locator('main.card').waitFor()
  await page.fill('#f-BrandName', 'Harbour & Sons')
  await frame(page).getByText('Harbour & Sons').first().waitFor()
  hold('a brand is seen as it is typed', !(await frame(page).locator('html').textContent()).includes('Chancery'))
  await underAxe(page, 'a brand')
  await page.click('[data-discard]')
  await page.waitForFunction(() => document.querySelector('#f-BrandName')?.value === '')
  hold('settings complain of nothing', complaints.length === 0, complaints.join('; '))
  await context.close()
}

/** Makes a page of a shipped one, sees it as it is typed, meets an error, publishes, and goes back. */
export async function editor(opened, picture) {
  const { context, page, complaints } = await opened({})
  await page.goto(`${base}/console/CustomView`)
  await page.click('a[href="/console/CustomView/try"]')
  await page.selectOption('#f-template', 'Terms')
  await page.click('form[method=get] button')
  await page.waitForURL(/template=Terms/)
  await frame(page).locator('main.card').waitFor()
  hold('a shipped page is shown as it is', (await page.inputValue('#f-location')) === '/views/global/Terms')
  const steps = await page.evaluate(() => history.length)
  await page.fill('textarea[name=content]', HEADING)
  await frame(page).getByText('Welcome aboard').waitFor()
  hold('what is typed is seen', (await page.evaluate(() => history.length)) === steps, 'and no step of the way back')
  await page.selectOption('#f-language', 'De')
  await frame(page).locator('html[lang=de]').waitFor()
  hold('in both languages', true)
  await page.check('input[value=phone]')
  const wide = await page.locator('iframe').evaluate((one) => one.getBoundingClientRect().width)
  hold('as wide as a phone', wide <= 390, wide)
  await picture(page, 'editor')
  await underAxe(page, 'the editor')
  await page.fill('textarea[name=content]', `${HEADING}\n{% if %}`)
  await frame(page).locator('[data-line]').click()
  const at = await page.evaluate(() => {
    const text = document.querySelector('textarea[name=content]')
    return document.activeElement === text ? text.selectionStart : -1
  })
  hold('an error leads to its line', at > HEADING.length, at)
  hold('nothing is published yet', (await call('GET', views, undefined, 200)).length === 0)
  await page.fill('textarea[name=content]', HEADING)
  await page.click('.bar button.main')
  await page.waitForURL(/done=/)
  hold('published', (await call('GET', views, undefined, 200))[0].content === HEADING)
  await page.goto(`${base}/console/CustomView/try?of=${encodeURIComponent('/views/global/Terms')}`)
  await page.fill('textarea[name=content]', '<p>second</p>')
  await page.click('.bar button.main')
  await page.waitForURL(/done=/)
  await page.goto(`${base}/console/CustomAuditTrail`)
  await page.locator('tbody th a').first().click()
  await page.click('.acts a[href*="/CustomView/try?entry="]')
  hold('the trail leads to the version before', (await page.inputValue('textarea[name=content]')) === HEADING)
  await page.click('.bar button.main')
  await page.waitForURL(/done=/)
  hold('and it is back', (await call('GET', views, undefined, 200))[0].content === HEADING)
  await call('DELETE', `${views}/views/global/Terms`, undefined, 204)
  hold('the editor complains of nothing', complaints.length === 0, complaints.join('; '))
  await context.close()
  await brand(opened)
  const bare = await opened({ script: false })
  await bare.page.goto(`${base}/console/CustomView/try`)
  await bare.page.fill('textarea[name=content]', HEADING)
  await bare.page.click('[data-show]')
  await frame(bare.page).getByText('Welcome aboard').waitFor()
  hold('without script a button shows it', true)
  await bare.context.close()
}

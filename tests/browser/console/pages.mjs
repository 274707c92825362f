// Every page of the console: its HTML, axe, and whether it fits, however it is looked at. WHOLE looks at all of it under axe.

import { writeFileSync } from 'node:fs'
import axe from 'axe-core/axe.min.js'
import { base } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'
import { violations } from '../sign_in/look.mjs'

const isWhole = Boolean(process.env.WHOLE)
/** Rules of axe whose result depends on colours or on the width. */
const OF_LOOKS = ['color-contrast', 'link-in-text-block', 'target-size', 'scrollable-region-focusable']
/** How pages are looked at: language, colours, width, script. They are seen whole: a bar that sticks covers nothing. The first is left
 * to WHOLE: the settings of the second contain its colours and width, and the third its language. */
const LOOKS = [
  { lang: 'en', theme: 'light', width: 1440, script: true },
  { lang: 'de', theme: 'dark', width: 320, script: true },
  { lang: 'en', theme: 'light', width: 768, script: false },
].slice(isWhole ? 0 : 1)
/** What else people set: the page is changed to it where it stands, and must still fit. One after another is as little of a change as
 * can be: a new width costs more than all else here. `rules` names the rules of axe whose result can differ from that before. */
const SETTINGS = [
  { name: 'from right to left, narrow', dir: 'rtl', width: 320 },
  { name: 'at 200 %', width: 640 },
  { name: 'text twice as large', text: '200%', width: 1280 },
  { name: 'from right to left, text twice as large', dir: 'rtl', text: '200%', width: 1280 },
  { name: 'in forced colours', forcedColors: 'active', width: 1280 },
  { name: 'from right to left', dir: 'rtl', width: 1440 },
  { name: 'light', colorScheme: 'light', width: 1440, rules: OF_LOOKS },
]
/** Pages that no link of another one leads to. */
const MORE = ['/console/me', '/console/ClientApp/636f6e73-6f6c-8000-8000-000000000001/rotation', '/console/ClientApp/636f6e73-6f6c-8000-8000-000000000001/tokens', '/console/ClientApp/636f6e73-6f6c-8000-8000-000000000001/safety?profile=fapi2',
  '/console/health', '/console/configuration', '/console/welcome?step=address', '/console/welcome?step=mail', '/console/welcome?step=second', '/console/welcome?step=user',
  '/console/store/default/User/new', '/console/store/default/User/import', '/console/Tenant/new', '/console/ClientApp/new', '/console/ClientApp/new?kind=web',
  '/console/ClientApp/new?kind=device', '/console/IdpInstance/connect', '/console/IdpInstance/connect?kind=Google', '/console/ClaimRule/try', '/console/CustomView/try', '/console/find?q=a', '/console/RoleAssignment/new', '/console/IdentityReplacement/new',
  '/console/store/default/recovery', '/console/store/default/recovery/new', '/console/store/default/readiness', '/console/store/default/readiness?reason=PasswordNotSet',
  '/console/store/default/User?q=nobody', '/console/nowhere', '/console/CustomAuditTrail?who=nobody',
  '/console/store/default/CustomAuditTrail?area=User&from=2001-01-01T00:00']

/** Runs in the page: what does not fit its width. */
function wideFaults() {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return []
  const isOut = (one) => { const { left, right } = one.getBoundingClientRect(); return left < -1 || right > clientWidth + 1 }
  const widest = [...document.querySelectorAll('main *')].filter(isOut).at(-1)
  return [`it is ${scrollWidth} wide of ${clientWidth}: ${widest?.outerHTML.slice(0, 120)}`]
}

/** Runs in the page: what is wrong with its structure, and what moves though nothing should. */
function structureFaults() {
  const found = []
  for (const one of ['h1', 'main', 'title']) {
    const count = document.querySelectorAll(one).length
    if (count !== 1) found.push(`${count} of ${one}`)
  }
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id)
  if (new Set(ids).size !== ids.length) found.push(`an id is there twice: ${ids.filter((id, at) => ids.indexOf(id) !== at)}`)
  const moves = (one) => { const { transitionDuration, animationName } = getComputedStyle(one); return parseFloat(transitionDuration) > 0.001 || animationName !== 'none' }
  const moving = [...document.querySelectorAll('body *')].find(moves)
  if (moving) found.push(`it moves: ${moving.outerHTML.slice(0, 120)}`)
  return found
}

/** Changes how wide a page is, and its colours. */
async function show(page, width, colorScheme, forcedColors = 'none') {
  if (page.viewportSize().width !== width) await page.setViewportSize({ width, height: 4000 })
  await page.emulateMedia({ forcedColors, colorScheme })
}

/** Changes a page to what somebody has set, and looks again. */
async function set(page, { dir = 'ltr', text = '', width, forcedColors, colorScheme, rules }, except) {
  const underAxe = isWhole || rules
  // to draw a page at each width takes most of the time: elements that are clipped have their place and size, but are not drawn. Axe
  // looks at what can be seen
  await page.evaluate(([dir, fontSize, clipPath]) => {
    document.documentElement.dir = dir
    Object.assign(document.documentElement.style, { fontSize, clipPath })
  }, [dir, text, underAxe ? '' : 'inset(100%)'])
  await show(page, width, colorScheme, forcedColors)
  // axe takes the page's own colours for those that are forced
  const isOwn = (one) => !forcedColors || !one.startsWith('axe color-contrast')
  const found = underAxe ? await violations(page, isWhole ? {} : { rules, except }) : []
  return [...(await page.evaluate(wideFaults)), ...found.filter(isOwn)]
}

/** All pages that links lead to, and those that none does. */
async function addresses(open, records) {
  const { context, page } = await open({})
  await page.goto(`${base}/console`)
  const links = await page.locator('nav.side a[href^="/console"]').evaluateAll((all) => all.map((one) => one.getAttribute('href')))
  const items = []
  for (const link of links) {
    await page.goto(base + link)
    const row = page.locator('tbody th a').first()
    if (await row.count()) items.push(await row.getAttribute('href'))
  }
  await context.close()
  return [...new Set([...links, ...items, ...MORE, ...records])].filter((path) => !path.includes('#'))
}

/** Keeps a page as it was served: PAGES names the folder where its HTML is checked. */
async function keep(answer, name) {
  if (process.env.PAGES) writeFileSync(`${process.env.PAGES}/${name}.html`, await answer.text())
}

/** Runs in the page: what a finger would miss, lower than 44 points. */
const small = () => [...document.querySelectorAll('main :is(.button, select, input:not([type=hidden], [type=checkbox], [type=radio])), .places a')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !one.matches('.unseen') && one.getBoundingClientRect().height < 43.5)
  .map((one) => one.outerHTML.slice(0, 120))

/** What fingers, paper and eyes that want more contrast get. */
export async function media(open) {
  const people = `${base}/console/store/default/User`
  const touched = await open({ touch: true, width: 390 })
  await touched.page.goto(people)
  const path = await touched.page.locator('tbody th a').first().getAttribute('href')
  for (const address of [people, base + path, `${people}/new`]) {
    await touched.page.goto(address)
    const missed = await touched.page.evaluate(small)
    hold(`for fingers: ${new URL(address).pathname.split('/').at(-1).replace(/^[0-9a-f-]{36}$/, 'one')}`, missed.length === 0, missed.join('\n'))
  }
  await touched.context.close()
  const { context, page } = await open({})
  await page.emulateMedia({ media: 'print' })
  for (const address of [people, base + path]) {
    await page.goto(address)
    const shown = await page.locator(':is(.side, .tools, .acts, .bar, .batch):visible').count()
    hold(`on paper stands the page alone: ${address === people ? 'a list' : 'an item'}`, shown === 0 && (await page.locator('h1:visible').count()) === 1, shown)
  }
  await page.emulateMedia({ media: 'screen', contrast: 'more' })
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    const edges = await page.evaluate(() => getComputedStyle(document.querySelector('.card')).borderTopColor)
    await page.emulateMedia({ contrast: 'no-preference' })
    const usual = await page.evaluate(() => getComputedStyle(document.querySelector('.card')).borderTopColor)
    await page.emulateMedia({ contrast: 'more' })
    hold(`with more contrast edges are plainer: ${colorScheme}`, edges !== usual, `${edges} and ${usual}`)
  }
  await context.close()
}

/** Every page, in each look; `open` makes a page in a context of its own, and `prefer` chooses how pages look. */
export async function everyPage(open, prefer, records) {
  const paths = await addresses(open, records)
  hold(`${paths.length} pages are there`, paths.length > 30)
  for (const look of LOOKS) {
    const { context, page, complaints } = await open({ ...look, height: 4000 })
    // with script the colours are those of the browser, which settings change; without it they are the person's own choice
    await prefer(page, look.script ? { ...look, theme: '' } : look)
    // sent once, and not to each page; axe does not run in frames, where it throws when one goes away
    if (look.script) await context.addInitScript(`if (window === top) { ${axe.source} }`)
    const wrong = []
    const how = `${look.lang}, ${look.theme}, ${look.width}, ${look.script ? 'with' : 'without'} script`
    for (const [at, path] of paths.entries()) {
      const answer = await page.goto(base + path)
      if (look.width !== 1440) await keep(answer, `${look.lang}-${at}`)
      // the navigation is the same on every page
      const except = isWhole || at === 0 ? [] : ['.side']
      const found = [...(await page.evaluate(wideFaults)), ...(await page.evaluate(structureFaults)), ...(look.script ? await violations(page, { except }) : [])]
      for (const one of look.script ? SETTINGS : []) {
        found.push(...(await set(page, { colorScheme: look.theme, ...one }, except)).map((fault) => `${one.name}: ${fault}`))
      }
      await show(page, look.width, look.theme)
      if (found.length > 0) wrong.push(`${path} (${at}): ${found.join('; ')}`)
    }
    hold(`${paths.length} pages: ${how}`, wrong.length === 0, wrong.join('\n        '))
    hold(`no page complains: ${how}`, complaints.length === 0, complaints.slice(0, 5).join('; '))
    await context.close()
  }
}

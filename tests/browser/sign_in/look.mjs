// What every page must be, at every width.

import axe from 'axe-core/axe.min.js'
import { hold } from './cases.mjs'

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** Rules whose result depends on colours. */
export const COLOURS = ['color-contrast', 'link-in-text-block']
/** A telephone, a screen at 200 %, a screen. */
const SCREENS = [[320, 640, 1], [640, 400, 2], [1280, 800, 1]]

/** Runs axe on a page as it is shown now, with all rules or those that are named, except for elements that selectors name; its violations. */
export async function violations(page, { rules, except = [] } = {}) {
  // what the page may load does not bind what is evaluated from outside
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source)
  const options = rules ? { runOnly: { type: 'rule', values: rules } } :
    { runOnly: { type: 'tag', values: TAGS }, rules: { 'target-size': { enabled: true } } }
  return page.evaluate(async ([given, except]) => {
    const whole = except.length === 0 ? document : { exclude: except.map((one) => [one]) }
    const found = await globalThis.axe.run(whole, { ...given, resultTypes: ['violations'] })
    return found.violations.map(({ id, nodes }) => `axe ${id}: ${nodes.map((one) => one.html.slice(0, 200)).join(' | ')}`)
  }, [options, except])
}

/** Says whether axe finds nothing on a page as it is shown now. */
export async function underAxe(page, what) {
  const found = await violations(page)
  hold(`${what}, under axe`, found.length === 0, found.join('; '))
}

/** Runs in the page: what is wrong with its structure. */
function structureFaults(language) {
  const faults = []
  const all = (selector) => [...document.querySelectorAll(selector)]
  const must = (holds, fault) => holds || faults.push(fault)
  for (const one of ['h1', 'main', 'title']) must(all(one).length === 1, `${all(one).length} of ${one}`)
  must(document.documentElement.lang === language, `its language is ${document.documentElement.lang}`)
  must(document.title.includes(document.querySelector('h1')?.textContent.trim()), `its title is ${document.title}`)
  const scripts = all('script, [onclick], [style]').map((one) => one.outerHTML)
  const known = /^<script src="\/signin\/(post\.js"|passkey\.js" data-passkey="(get|create)" data-options="[^"]*") defer=""><\/script>$/
  must(scripts.every((one) => known.test(one)), `it has a script or a style of an element: ${scripts}`)
  const ids = all('[id]').map((one) => one.id)
  must(new Set(ids).size === ids.length, `an id is there twice: ${ids}`)
  for (const input of all('input:not([type=hidden])')) {
    const label = input.ariaLabel ?? input.labels[0]?.textContent.trim() ?? ''
    must(label !== '' && input.labels.length <= 1, `${input.name} has no label`)
  }
  // enter in a field presses the first one
  for (const form of all('form')) {
    const button = form.querySelector('button, [type=submit]')
    const has_main = form.querySelector('.main') !== null
    must(!has_main || button.matches('.main'), 'its first button is not the main one')
  }
  must(all('button, a').every((one) => one.textContent.trim() !== ''), 'a button or link says nothing')
  // password managers fill what is hidden, too
  const hidden = all('input').filter((one) => one.type !== 'hidden' && one.getClientRects().length === 0)
  must(hidden.every((one) => one.readOnly), `hidden fields: ${hidden.map((one) => one.name)}`)
  return faults
}

/** Runs in the page: what does not fit its width. */
function widthFaults() {
  const { scrollWidth, clientWidth } = document.documentElement
  const faults = scrollWidth > clientWidth ? [`it is ${scrollWidth} wide`] : []
  for (const one of document.querySelectorAll('body *')) {
    const { left, right, width } = one.getBoundingClientRect()
    const isOut = width > 0 && !one.closest('svg') && (left < -0.5 || right > clientWidth + 0.5)
    const isCut = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible' && one.tagName !== 'INPUT'
    if (isOut || isCut) faults.push(`cut off: ${one.outerHTML.slice(0, 120)}`)
  }
  return faults
}

/** What emulates screens, for each page. It stays: with it would go the authenticators that are plugged in. */
const emulators = new WeakMap()

async function emulatorOf(page) {
  if (!emulators.has(page)) emulators.set(page, await page.context().newCDPSession(page))
  return emulators.get(page)
}

/** Runs axe on a copy of a page that runs no script, where axe would not run either. */
async function violationsOfCopy(page, colorScheme) {
  const context = await page.context().browser().newContext({ colorScheme, reducedMotion: 'reduce', viewport: page.viewportSize() })
  try {
    const copy = await context.newPage()
    await copy.setContent(await page.content())
    return await violations(copy)
  } finally {
    await context.close()
  }
}

/** All that is wrong with a page. */
export async function look(page, language, { script = true, scheme } = {}) {
  const devtools = await emulatorOf(page)
  const found = await (script ? violations(page) : violationsOfCopy(page, scheme))
  const faults = [...(await page.evaluate(structureFaults, language)), ...found]
  // to draw a page at each width takes most of the time: elements that are clipped have their place and size, but are not drawn
  await page.evaluate(() => {
    document.adoptedStyleSheets = [new CSSStyleSheet()]
    document.adoptedStyleSheets[0].replaceSync('html { clip-path: inset(100%) }')
  })
  for (const [width, height, deviceScaleFactor] of SCREENS) {
    await devtools.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor, mobile: false })
    faults.push(...(await page.evaluate(widthFaults)).map((fault) => `at ${width}: ${fault}`))
  }
  await devtools.send('Emulation.clearDeviceMetricsOverride')
  await page.evaluate(() => { document.adoptedStyleSheets = [] })
  return faults
}

// The keyboard alone: where the focus goes, whether it is seen, and what keys do.

import { PATIENCE } from '../chromium.mjs'

/** Runs in the page: what has the focus, where it is, and whether that is seen. */
function focused() {
  const one = document.activeElement
  if (!one || one === document.body) return null
  const { top, left, bottom, width, height } = one.getBoundingClientRect()
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one)
  const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && !/, 0\)$/.test(outlineColor) &&
    width > 0 && height > 0 && top >= 0 && bottom <= innerHeight
  return { name: one.id || one.textContent.trim(), top, left, isSeen }
}

/** What has the focus, once the page was moved to where it is. */
async function settled(page) {
  for (let looked = 0; looked < 20; looked++) {
    const now = await page.evaluate(focused)
    if (!now || now.isSeen) return now
    await page.waitForTimeout(20)
  }
  return page.evaluate(focused)
}

/** Goes through all that takes the focus, and back to the beginning; its names, and what is wrong with the way. */
export async function tabThrough(page) {
  const stops = []
  const now = await page.evaluate(focused)
  if (now) stops.push(now)
  for (;;) {
    await page.keyboard.press('Tab')
    const next = await settled(page)
    if (!next || next.name === stops[0]?.name || stops.length > 20) break
    stops.push(next)
  }
  const unseen = stops.filter((one) => !one.isSeen).map((one) => `the focus is not seen at ${one.name}`)
  const back = stops.filter((one, at) => at > 0 && one.top < stops[at - 1].top - 1 && one.left <= stops[at - 1].left)
  return { names: stops.map((one) => one.name), faults: [...unseen, ...back.map((one) => `back up to ${one.name}`)] }
}

/** Presses Tab until something has the focus. */
export async function tabTo(page, name) {
  for (let pressed = 0; pressed < 20; pressed++) {
    if ((await page.evaluate(focused))?.name === name) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`the keyboard does not reach ${name}`)
}

/** Waits until the page has put the focus where typing begins: browsers obey `autofocus` only when they next paint. */
export async function focusOn(page, name) {
  for (const begun = Date.now(); Date.now() - begun < PATIENCE;) {
    if ((await page.evaluate(focused))?.name === name) return
    await page.waitForTimeout(20)
  }
  throw new Error(`typing does not begin at ${name}`)
}

/** Presses a key that leads to another page. */
export async function enter(page, key = 'Enter') {
  await Promise.all([page.waitForEvent('framenavigated'), page.keyboard.press(key)])
  await page.waitForLoadState()
}

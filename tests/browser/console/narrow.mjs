// A narrow window: what has the focus is seen, whichever way the keyboard comes to it, and no bar covers it.

import { base } from '../api.mjs'
import { hold } from '../sign_in/cases.mjs'

/** Runs in the page: what covers the element that has the focus; nothing where it is seen. */
function coveredBy() {
  const one = document.activeElement
  if (!one?.closest('main')) return ''
  const { left, right, top, bottom } = one.getBoundingClientRect()
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
  const isSeen = there && (one.contains(there) || there.contains(one) || [...(one.labels ?? [])].some((label) => label.contains(there)))
  return isSeen ? '' : `${one.id || one.className || one.localName} by ${there?.className || there?.localName || 'nothing'}`
}

/** Goes through a long form that was changed, forwards and backwards. */
export async function narrow(opened) {
  for (const height of [480, 640]) {
    const { context, page, complaints } = await opened({ width: 320, height })
    await page.goto(`${base}/console/store/default/User/new`)
    await page.fill('#f-loginName', 'somebody narrow')
    const covered = new Set()
    for (const key of ['Tab', 'Shift+Tab']) {
      for (let pressed = 0; pressed < 60; pressed++) {
        await page.keyboard.press(key)
        const told = await page.evaluate(coveredBy)
        if (told) covered.add(told)
      }
    }
    hold(`no bar covers what has the focus at 320 by ${height}`, covered.size === 0, [...covered].join('; '))
    hold('no narrow page complains', complaints.length === 0, complaints.join('; '))
    await context.close()
  }
}

// The console over many users: what the first view weighs, how soon somebody is found, how far one can scroll, and the walk
// of a help desk to the one who is locked. Times are told; what must hold on any machine is held.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_SETUP=/console/setup/... CHANCERY_TOKEN=... USERS=1000000 node million.mjs

import { administration, base, call, setOptions } from './api.mjs'
import { launch } from './chromium.mjs'
import { hold } from './sign_in/cases.mjs'

const users = Number(process.env.USERS)
const PASSWORD = 'four lively grey herons'
const LIST = `${base}/console/store/default/User`
/** How far the list is scrolled, and how deep a page is looked at: less where there are not so many. */
const ROWS = Math.min(10_000, users), DEPTH = Math.min(100_000, Math.floor(users / 2))
/** The bounds of section 7 that do not depend on the machine. */
const MOST = { bytes: 90 << 10, page: 15 << 10, elements: 6000, heap: 50 << 20 }
/** A link of 40 ms and 10 Mbit/s, and a processor four times slower. */
const SLOW = { offline: false, latency: 40, downloadThroughput: 1.25e6, uploadThroughput: 1.25e6 }

const tell = (what, value) => console.log(`| ${what} | ${value} |`)
const middle = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]
/** The middle of some, and what 99 of 100 do not exceed. */
const spread = (all) => {
  const sorted = all.toSorted((a, b) => a - b)
  return `${middle(sorted).toFixed(0)} ms in the middle, ${sorted[Math.ceil(sorted.length * 0.99) - 1].toFixed(0)} at p99`
}
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`

async function administrator(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(base + process.env.CHANCERY_SETUP)
  const typed = { firstName: 'Margaret', lastName: 'Hamilton', emailAddress: 'mh@example.com', loginName: 'margaret', password: PASSWORD, repeated: PASSWORD }
  for (const [name, text] of Object.entries(typed)) await page.fill(`#f-${name}`, text)
  await page.click('button.main')
  await page.fill('#username', 'margaret')
  await page.fill('#password', PASSWORD)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/console/welcome`)
  const state = await context.storageState()
  await context.close()
  return state
}

/** A tab of its own, with what drives it and the bytes that it loaded. */
async function tab(browser, state) {
  const context = await browser.newContext({ storageState: state, viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send('Network.enable')
  const loaded = { bytes: 0 }
  devtools.on('Network.loadingFinished', (one) => { loaded.bytes += one.encodedDataLength })
  return { context, page, devtools, loaded }
}

/** Runs in the page: when the first row could be read. It comes with the page, whole. */
const paint = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
const painted = async (page) => (await (await page.waitForFunction(paint)).jsonValue()).toFixed(0)

async function firstView(browser, state) {
  const { context, page, devtools, loaded } = await tab(browser, state)
  await page.addInitScript(() => {
    globalThis.shifted = []
    const name = ({ node, previousRect, currentRect }) => `${(node?.outerHTML ?? node?.textContent)?.slice(0, 80)} from ${previousRect.y} to ${currentRect.y}`
    new PerformanceObserver((list) => { for (const one of list.getEntries()) globalThis.shifted.push(`${one.value}: ${one.sources.map(name)}`) }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.goto(LIST, { waitUntil: 'networkidle' })
  const first = loaded.bytes
  loaded.bytes = 0
  await page.goto(LIST, { waitUntil: 'networkidle' })
  hold('the first view is small', first <= MOST.bytes, first)
  hold('a later page is small', loaded.bytes <= MOST.page, loaded.bytes)
  const shifted = await page.evaluate(() => globalThis.shifted)
  hold('nothing jumps', shifted.length === 0, shifted.join('; '))
  tell('first view, on the wire', kilobytes(first))
  tell('later page, on the wire', kilobytes(loaded.bytes))
  const waits = []
  for (let i = 0; i < 5; i++) {
    await page.goto(LIST, { waitUntil: 'networkidle' })
    waits.push(await page.evaluate(() => { const one = performance.getEntriesByType('navigation')[0]; return one.responseStart - one.requestStart }))
  }
  tell('the server\'s answer to the list, middle of 5', `${middle(waits).toFixed(0)} ms`)
  await devtools.send('Network.emulateNetworkConditions', SLOW)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  await page.goto(LIST, { waitUntil: 'networkidle' })
  tell('first row, warm, 40 ms, 10 Mbit/s, processor 4 times slower', `${await painted(page)} ms`)
  await devtools.send('Network.clearBrowserCache')
  await page.goto(LIST, { waitUntil: 'networkidle' })
  tell('first row, cold, the same', `${await painted(page)} ms`)
  await context.close()
}

/** How long a whole page takes with a warm cache, from the request to the end of its load event. */
async function whole(browser, state) {
  const { context, page } = await tab(browser, state)
  for (const [what, address] of [['the list', LIST], ['the overview', `${base}/console`]]) {
    const times = []
    for (let i = 0; i < 21; i++) {
      await page.goto(address, { waitUntil: 'networkidle' })
      times.push(await page.evaluate(() => performance.getEntriesByType('navigation')[0].duration))
    }
    tell(`the whole page, ${what}, 21 times`, spread(times))
  }
  await context.close()
}

async function find(browser, state, someone) {
  const { context, page } = await tab(browser, state)
  await page.goto(`${base}/console`, { waitUntil: 'networkidle' })
  for (const [what, text] of [['found', someone.loginName], ['not found', 'nobody is called so']]) {
    const waits = []
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press('Control+k')
      const answer = page.waitForResponse((one) => one.url().includes(`q=${encodeURIComponent(text).replaceAll('%20', '+')}`))
      await page.keyboard.insertText(text)
      const { startTime, responseStart } = (await answer).request().timing()
      waits.push(responseStart === undefined ? startTime : responseStart)
      if (what === 'found') await page.locator('#found [role=option]', { hasText: someone.loginName }).first().waitFor()
      await page.keyboard.press('Escape')
    }
    tell(`one box over all, ${what}: the answer, middle of 5`, `${middle(waits).toFixed(0)} ms`)
  }
  await context.close()
}

/** Runs in the page: how long the server takes to begin its answer, each time. */
async function asked([address, times]) {
  const waits = []
  for (let i = 0; i < times; i++) {
    performance.clearResourceTimings()
    await (await fetch(address)).text()
    const [one] = performance.getEntriesByType('resource')
    waits.push(one.responseStart - one.requestStart)
  }
  return waits
}

/** What pages and their parts cost the server, one after another. */
async function answers(browser, state, someone) {
  const { context, page } = await tab(browser, state)
  await page.goto(LIST, { waitUntil: 'networkidle' })
  const next = await page.getAttribute('#list [rel=next]', 'href')
  const all = [['a page, the list', LIST], ['a page, one user', `${LIST}/${someone.id}`], ['a part, the next rows', base + next],
    ['a part, one user\'s changes', `${LIST}/${someone.id}/history`], ['finding', `${base}/console/find?part=1&q=${encodeURIComponent(someone.loginName)}`]]
  for (const [what, address] of all) tell(`200 answers: ${what}`, spread(await page.evaluate(asked, [address, 200])))
  await context.close()
}

/** Runs in the page: begins to wait for a letter, and for the answer to it. */
function listen() {
  const box = document.querySelector('#palette input'), found = document.querySelector('#found')
  globalThis.answered = new Promise((resolve) => {
    box.addEventListener('input', () => {
      const begun = performance.now()
      const seen = (_, watch) => { watch.disconnect(); requestAnimationFrame(() => resolve(performance.now() - begun)) }
      new MutationObserver(seen).observe(found, { childList: true })
    }, { once: true })
  })
}

/** What somebody who types waits for, on a slow line and processor. */
async function typing(browser, state, someone) {
  const { context, page, devtools } = await tab(browser, state)
  await page.goto(`${base}/console`, { waitUntil: 'networkidle' })
  await devtools.send('Network.emulateNetworkConditions', SLOW)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  await page.keyboard.press('Control+k')
  await page.locator('#found [role=option]').first().waitFor()
  const waits = []
  for (const letter of someone.loginName) {
    await page.evaluate(listen)
    await page.keyboard.type(letter)
    waits.push(await page.evaluate(() => globalThis.answered))
  }
  tell('typing to answer, 40 ms, 10 Mbit/s, processor 4 times slower', `${middle(waits).toFixed(0)} ms in the middle of ${waits.length} letters`)
  await context.close()
}

/** Runs in the page: scrolls until so many rows are there; how long frames took, and the most elements. */
async function scroll(rows) {
  const frames = []
  let most = 0, last = performance.now(), still = 0, before = 0
  for (;;) {
    // a browser that draws nothing any more must not hold up the rest
    await Promise.race([new Promise(requestAnimationFrame), new Promise((resolve) => { setTimeout(resolve, 1000) })])
    const now = performance.now()
    frames.push(now - last)
    last = now
    scrollBy(0, 1200)
    // pieces that are far away are put aside: the first has 50 rows, each other one 15
    const there = 35 + document.querySelectorAll('#list tbody').length * 15
    if (frames.length % 20 === 0) most = Math.max(most, document.querySelectorAll('*').length)
    still = there === before ? still + 1 : 0
    before = there
    if (there >= rows || still > 2000) return { there, most, frames }
  }
}

async function scrolling(browser, state) {
  const { context, page, devtools } = await tab(browser, state)
  await page.goto(LIST, { waitUntil: 'networkidle' })
  const begun = Date.now()
  const { there, most, frames } = await page.evaluate(scroll, ROWS)
  const took = (Date.now() - begun) / 1000
  await devtools.send('HeapProfiler.collectGarbage')
  await devtools.send('Performance.enable')
  const { metrics } = await devtools.send('Performance.getMetrics')
  const heap = metrics.find((one) => one.name === 'JSHeapUsedSize').value
  hold(`${ROWS} rows are scrolled through`, there >= ROWS, there)
  hold('elements stay few', most < MOST.elements, most)
  hold('the heap stays small', heap < MOST.heap, heap)
  const sorted = frames.toSorted((a, b) => a - b)
  tell(`scrolling through ${there} rows`, `${took.toFixed(0)} s; frames ${middle(frames).toFixed(1)} ms in the middle, ${sorted[Math.floor(sorted.length * 0.95)].toFixed(0)} at p95`)
  tell('elements at most; heap at the end', `${most}; ${(heap / (1 << 20)).toFixed(1)} MB`)
  await context.close()
}

/** The cursor that is so deep in the list, found by the interface in large pieces. */
async function cursorAt(depth) {
  const token = process.env.CHANCERY_TOKEN
  let cursor = ''
  for (let seen = 0; seen < depth; seen += 1000) {
    const answer = await fetch(`${base}${administration}/User?count=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { headers: { authorization: `Bearer ${token}` } })
    const link = answer.headers.get('link')?.match(/<([^>]*)>/)?.[1]
    await answer.arrayBuffer()
    if (!link) throw new Error(`${answer.status}: no next page at ${seen}`)
    cursor = new URL(link, base).searchParams.get('cursor')
  }
  return cursor
}

async function depth(browser, state) {
  const { context, page } = await tab(browser, state)
  const waits = []
  await page.goto(`${LIST}?cursor=${encodeURIComponent(await cursorAt(DEPTH))}`)
  for (let i = 0; i < 5; i++) {
    await page.goto(base + (await page.getAttribute('#list [rel=next]', 'href')))
    waits.push(await page.evaluate(() => { const one = performance.getEntriesByType('navigation')[0]; return one.responseStart - one.requestStart }))
  }
  hold('a page as deep has its rows', (await page.locator('#list tbody tr').count()) === 50)
  tell(`the next page at depth ${DEPTH}: the server's answer, middle of 5`, `${middle(waits).toFixed(0)} ms`)
  await context.close()
}

/** Finds who is locked, sees why, unlocks, and proves it in the audit trail. */
async function helpDesk(browser, state, someone) {
  await call('POST', `${administration}/User/${someone.id}/state`, { isUserLocked: true }, 200)
  const { context, page } = await tab(browser, state)
  await page.goto(LIST)
  const begun = Date.now()
  await page.click('a[href$="view=locked"]')
  await page.locator('tbody th a').first().click()
  hold('the one who is locked is found', page.url().includes(someone.id), page.url())
  await page.click('aside li.bad a[href$="/SetUserState"]')
  await page.selectOption('#f-isUserLocked', 'false')
  await page.click('.bar .main')
  await page.waitForURL(/done=/)
  hold('unlocked', (await page.locator('aside li.bad a[href$="/SetUserState"]').count()) === 0)
  await page.locator('.after a[href*="/CustomAuditTrail/"]').first().click()
  await page.waitForSelector('[data-proof].told:not(.warn)')
  hold('proven in the trail', (await page.locator('[data-check].good').count()) === 5)
  tell('the walk: found, seen why, unlocked, proven', `${((Date.now() - begun) / 1000).toFixed(1)} s`)
  await context.close()
}

const browser = await launch()
try {
  await setOptions({ PasskeyEnrolment: 'Off' })
  const state = await administrator(browser)
  const [someone] = await call('GET', `${administration}/User?count=1&sortBy=id&sortOrder=descending&filter=${encodeURIComponent('loginName ne "margaret"')}`, undefined, 200)
  await firstView(browser, state)
  await whole(browser, state)
  await find(browser, state, someone)
  await typing(browser, state, someone)
  await answers(browser, state, someone)
  await scrolling(browser, state)
  await depth(browser, state)
  await helpDesk(browser, state, someone)
} finally {
  await browser.close()
}

// Pictures of the console's main pages, made from their samples, compared with those that are kept: what a change of the style
// does to pages that nobody thought of is seen here.
//
//   node pictures.mjs PAGES KEPT [NEW]
//
// PAGES has the pages as scripts/console-preview makes them, KEPT the pictures; a picture that differs is put into NEW.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { launch } from '../chromium.mjs'
import { hold } from '../sign_in/cases.mjs'

const [pages, kept, made] = process.argv.slice(2)
const NAMES = ['overview', 'users', 'user', 'user-german', 'new', 'errors', 'review', 'merge', 'find', 'entry', 'import', 'registered']
const THEMES = ['light', 'dark'], WIDTHS = [390, 1280], HEIGHT = 800
/** The share of points that may differ, and by how much a point may before it does. */
const MOST = 0.001, ALIKE = 24
const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' }

/** Serves the folder, without a server: pages have one address, and one time. */
async function opened(context) {
  const page = await context.newPage()
  await page.clock.setFixedTime('2026-11-23T06:40:00Z')
  await page.route('**/*', (route) => {
    const file = `${pages}${new URL(route.request().url()).pathname}`
    return existsSync(file) ? route.fulfill({ body: readFileSync(file), contentType: TYPES[extname(file)] }) : route.fulfill({ status: 404 })
  })
  return page
}

/** Runs in a page: the share of points in which two pictures differ. */
async function difference([one, other, alike]) {
  const points = async (picture) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/webp;base64,${picture}`)).blob())
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
    context.drawImage(bitmap, 0, 0)
    return context.getImageData(0, 0, bitmap.width, bitmap.height)
  }
  const [before, after] = [await points(one), await points(other)]
  if (before.width !== after.width || before.height !== after.height) return 1
  let count = 0
  for (let at = 0; at < before.data.length; at += 4) {
    if ([0, 1, 2].some((channel) => Math.abs(before.data[at + channel] - after.data[at + channel]) > alike)) count++
  }
  return count / (before.data.length / 4)
}

async function picture(browser, name, theme, width) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: HEIGHT }, reducedMotion: 'reduce', timezoneId: 'UTC', locale: name.includes('german') ? 'de' : 'en' })
  try {
    const page = await opened(context)
    await page.goto(`http://console.test/${name}.html`)
    await page.evaluate(() => document.fonts.ready)
    await page.waitForLoadState('networkidle')
    const devtools = await context.newCDPSession(page)
    // one frame is drawn with the fonts before the picture
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
    return (await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 50 })).data
  } finally {
    await context.close()
  }
}

const browser = await launch()
try {
  const judge = await browser.newPage()
  mkdirSync(made ?? kept, { recursive: true })
  for (const name of NAMES) {
    for (const theme of THEMES) {
      for (const width of WIDTHS) {
        const file = `${name}-${theme}-${width}.webp`
        const now = await picture(browser, name, theme, width)
        if (made === undefined) {
          writeFileSync(`${kept}/${file}`, now, 'base64')
          continue
        }
        const before = existsSync(`${kept}/${file}`) ? readFileSync(`${kept}/${file}`, 'base64') : now
        const share = await judge.evaluate(difference, [before, now, ALIKE])
        if (share > MOST) writeFileSync(`${made}/${file}`, now, 'base64')
        hold(`${file} is as it was`, share <= MOST && existsSync(`${kept}/${file}`), `${(share * 100).toFixed(2)} % of it differ`)
      }
    }
  }
} finally {
  await browser.close()
}

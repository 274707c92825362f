// The shipped pages with their samples, as files: each in both colour schemes and at every width.
//
//   node shipped.mjs FOLDER
//
// The names of the files end with the language. CHROMIUM names the browser when it is not /usr/bin/chromium-headless-shell.

import { readFileSync, readdirSync } from 'node:fs'
import { launch } from './chromium.mjs'
import { hold, runAll } from './sign_in/cases.mjs'
import { COLOURS, look, violations } from './sign_in/look.mjs'

const folder = process.argv[2]
const names = readdirSync(folder).filter((name) => name.endsWith('.html'))
if (names.length === 0) throw new Error(`there are no pages in ${folder}`)

/** Looks at a page: with all rules in one scheme, with those of colours in the other. */
async function inspect(page, name) {
  const language = name.match(/-(..)\.html$/)[1]
  const [scheme, other] = language === 'de' ? ['dark', 'light'] : ['light', 'dark']
  await page.emulateMedia({ colorScheme: scheme })
  await page.setContent(readFileSync(`${folder}/${name}`, 'utf8'))
  const faults = await look(page, language)
  await page.emulateMedia({ colorScheme: other })
  faults.push(...(await violations(page, { rules: COLOURS })).map((fault) => `${other}: ${fault}`))
  hold(name, faults.length === 0, faults.join('\n        '))
}

const browser = await launch()
try {
  // colours that change slowly would be measured between two schemes
  const pages = [await browser.newPage({ reducedMotion: 'reduce' }), await browser.newPage({ reducedMotion: 'reduce' })]
  await runAll(names.map((name) => [name, async () => {
    const page = pages.pop()
    await inspect(page, name).finally(() => pages.push(page))
  }]), pages.length)
} finally {
  await browser.close()
}

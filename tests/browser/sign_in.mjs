// The pages of a sign-in in a real browser: every state of every page, what people do with them, and what others try.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_TOKEN=... node sign_in.mjs
//
// The token is a SystemAdmin's: users, client apps and a tenant are made. CHROMIUM names the browser when it is
// not /usr/bin/chromium.

import { setOptions } from './api.mjs'
import { launch } from './chromium.mjs'
import { hold, runAll } from './sign_in/cases.mjs'
import { openHome } from './sign_in/home.mjs'
import { journeyCases } from './sign_in/journeys.mjs'
import { keyboardCases } from './sign_in/keyboard.mjs'
import { strangerCases } from './sign_in/strangers.mjs'
import { wayCases } from './sign_in/ways.mjs'

const browser = await launch()
const home = await openHome()
// what types here is faster than people are, and several do so in one name
await setOptions({ LoginThrottlingEnabled: 'false' })
try {
  const groups = [journeyCases, keyboardCases, wayCases, strangerCases]
  await runAll(groups.flatMap((group) => group(browser, home, hold)))
} finally {
  await setOptions({ LoginThrottlingEnabled: 'true' })
  await browser.close()
  home.site.close()
}

// The pages of a sign-in in a real browser: every state of every page, what people do with them, and what others try.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_TOKEN=... node sign_in.mjs
//
// The token is a SystemAdmin's: users, client apps and tenants are made. Passkeys need the server's name, not its number, and
// mail a server that may call this machine (CHANCERY_PRIVATE_DESTINATIONS). CHROMIUM names the browser when it is
// not /usr/bin/chromium-headless-shell.

import { setOptions } from './api.mjs'
import { launch } from './chromium.mjs'
import { hold, runAll } from './sign_in/cases.mjs'
import { dueCases, mailCases } from './sign_in/due.mjs'
import { openHome } from './sign_in/home.mjs'
import { journeyCases } from './sign_in/journeys.mjs'
import { keyboardCases } from './sign_in/keyboard.mjs'
import { openMailbox } from './sign_in/mailbox.mjs'
import { passkeyCases } from './sign_in/passkeys.mjs'
import { secondFactorCases } from './sign_in/second_factor.mjs'
import { strangerCases } from './sign_in/strangers.mjs'
import { wayCases } from './sign_in/ways.mjs'

const browser = await launch()
const mailbox = await openMailbox()
const home = { ...(await openHome()), mailbox }
/** The groups of cases, each with the options of the store that it needs. */
const rounds = [
  [{ PasskeyEnrolment: 'Off', MailServerConfig: '' },
    [journeyCases, keyboardCases, wayCases, strangerCases, secondFactorCases, dueCases]],
  [{ MailServerConfig: mailbox.config, EMailSenderAddress: 'noreply@example.com' }, [mailCases]],
  [{ PasskeyEnrolment: 'Offer', PasskeyRequiredCredentialCount: '1' }, [passkeyCases]],
]
try {
  // what types here is faster than people are, and several do so in one name
  await setOptions({ LoginThrottlingEnabled: 'false' })
  for (const [options, groups] of rounds) {
    await setOptions(options)
    await runAll(groups.flatMap((group) => group(browser, home, hold)))
  }
} finally {
  await setOptions({ LoginThrottlingEnabled: 'true', MailServerConfig: '', PasskeyRequiredCredentialCount: '2' })
  await browser.close()
  home.site.close()
  mailbox.close()
}

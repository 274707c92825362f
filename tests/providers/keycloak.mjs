// Keycloak (Maven Central): a realm that is imported, with its own pages.

import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { base } from '../browser/api.mjs'
import { PATIENCE } from '../browser/chromium.mjs'
import { freePort, pause } from './ports.mjs'

const PASSWORD = 'an analytical engine'
const REALM = '/realms/partner'
/** The subjects that the realm gives its people. */
const subjects = { ada: 'a1f0c0de-0000-4000-8000-000000001815', alan: 'a1f0c0de-0000-4000-8000-000000001912' }

/** Confirms the sign-out on its page. */
const signOut = (page) => page.locator('#kc-logout').click()
const asksAgain = (page) => page.locator('input#username:visible').waitFor()

/** Signs somebody in at its page, which has no field for the name where it knows it. */
async function signIn(page, person) {
  await page.locator('#password').waitFor()
  const name = page.locator('input#username:visible')
  if (await name.count()) await name.fill(person.sub)
  await page.fill('#password', PASSWORD)
  await page.locator('#kc-login').click()
}

const said = []

/** Runs its program with these arguments; answers when it has ended, or when what it does is done. */
async function run(folder, words, environment, isDone = () => false) {
  const env = { ...process.env, JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m', ...environment }
  const program = spawn(`${folder}/bin/kc.sh`, words, { env })
  // the script passes the signal on
  const close = () => program.kill()
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (text) => said.push(text))
  for (const end = Date.now() + PATIENCE; program.exitCode !== 0 && !(await isDone()); await pause(500)) {
    if (program.exitCode === null && Date.now() < end) continue
    close()
    throw new Error(`Keycloak does not ${words[0]}: ${said.join('')}`)
  }
  return close
}

/** Starts it behind a proxy, from a folder of its own. */
export async function start(proxy, callback, folder) {
  const port = await freePort()
  mkdirSync(`${folder}/data/import`, { recursive: true })
  copyFileSync(new URL('keycloak/realm.json', import.meta.url), `${folder}/data/import/realm.json`)
  await run(folder, ['build', '--db=dev-mem'], {})
  const settings = ['--http-enabled=true', '--http-host=127.0.0.1', `--http-port=${port}`, `--hostname=${proxy.issuer}`]
  const isThere = () => fetch(`http://127.0.0.1:${port}${REALM}`).then((answer) => answer.ok, () => false)
  const close = await run(folder, ['start', '--optimized', '--import-realm', ...settings], { CALLBACK: callback, GOODBYE: `${base}/signin/signedout`, PASSWORD }, isThere)
  proxy.target = port
  const options = { ClientId: 'chancery', ClientSecret: 'quiet' }
  return { close, settings: { path: REALM, tellsAuthTime: true, options, signIn, subjects, signOut, asksAgain } }
}

// Passkeys with a real browser: registers and uses credentials of Chromium's virtual authenticator
// with a running server, and tries what must be refused.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_TOKEN=... node passkeys.mjs
//
// The token is a SystemAdmin's; options of the user store `default` are changed. CHROMIUM names
// the browser when it is not /usr/bin/chromium-headless-shell.

import { createUser, finishAuthentication, finishRegistration, list, prove, refused, remove, setOptions, start } from './api.mjs'
import { open } from './page.mjs'

const AUTHENTICATION = '/PasskeyCredential/authentication'
const registration = (user) => `/PasskeyCredential/user/${user.id}/registration`
const credentials = (user) => `/PasskeyCredential/user/${user.id}`
const bytes = (text) => Buffer.from(text, 'base64').toString('hex')

/** The answer of a ceremony that the browser must carry out. */
function answered(what, { answer, error }) {
  if (!answer) throw new Error(`the browser does not ${what}: ${error}`)
  return answer
}

const browser = await open()
try {
  const options = { PasskeyEnabled: 'true', PasskeyRelyingPartyId: 'localhost', PasskeyRelyingPartyName: 'Test',
    PasskeyAllowedOrigins: browser.origin, PasskeyUserVerification: 'required', PasskeyAttestation: 'none' }
  await setOptions(options)
  const run = Date.now().toString(36)
  const ada = await createUser(`ada-${run}`)
  const bob = await createUser(`bob-${run}`)
  const device = await browser.plugIn()

  // registration
  const first = await start(registration(ada), undefined)
  prove('the options ask for a discoverable credential and a verified user',
    first.publicKey.rp.id === 'localhost' &&
      first.publicKey.authenticatorSelection.residentKey === 'required' &&
      first.publicKey.authenticatorSelection.userVerification === 'required',
    JSON.stringify(first.publicKey))
  const made = answered('register', await browser.register(first.publicKey))
  await refused('the registration at another user', 'PUT', first.end.replace(ada.id, bob.id), made)
  const passkey = await finishRegistration(first.end, made)
  prove('the browser registers a passkey', passkey.userId === ada.id && typeof passkey.id === 'string', JSON.stringify(passkey))
  prove('the passkey has the credential\'s id and its make',
    bytes(passkey.credentialIdBase64) === bytes(made.rawId) && /^[0-9a-f]{32}$/i.test(passkey.aaguidHex),
    JSON.stringify(passkey))
  await refused('a second end of the registration', 'PUT', first.end, made, [404, 409])
  const [listed, ...others] = await list(credentials(ada))
  prove('the passkey is listed', listed.id === passkey.id && others.length === 0)

  const again = await start(registration(ada), undefined)
  prove('the second registration excludes the first passkey',
    again.publicKey.excludeCredentials.some((one) => one.id === made.rawId))
  const excluded = await browser.register(again.publicKey)
  prove('the browser does not register one authenticator twice', excluded.error === 'InvalidStateError', JSON.stringify(excluded))

  const outside = await start(registration(bob), undefined)
  const foreign = await browser.elsewhere(() => browser.register(outside.publicKey))
  await refused('a registration from another origin', 'PUT', outside.end, answered('register elsewhere', foreign))

  // authentication
  const named = await start(AUTHENTICATION, { loginName: ada.loginName })
  const used = answered('authenticate', await browser.authenticate(named.publicKey))
  const result = await finishAuthentication(named.end, used)
  prove('the passkey signs in with a login name',
    result.userId === ada.id && [passkey.id, passkey.credentialIdBase64].includes(result.credentialId) &&
      !Number.isNaN(Date.parse(result.authenticatedOn)), JSON.stringify(result))
  await refused('the same answer again', 'PUT', named.end, used, [404, 409])
  const later = await start(AUTHENTICATION, { loginName: ada.loginName })
  await refused('an old answer to a new challenge', 'PUT', later.end, used)
  const [seen] = await list(credentials(ada))
  prove('the passkey\'s last use is known', Date.parse(seen.lastUsedOn) >= Date.parse(seen.createdOn), JSON.stringify(seen))

  // the authenticator also holds the credential that was refused above: go on with ada's alone
  const own = (await device.credentials()).find((one) => bytes(one.credentialId) === bytes(made.rawId))
  await device.unplug()
  const second = await browser.plugIn()
  await second.put(own)
  const anyone = await start(AUTHENTICATION, {})
  prove('without a login name any passkey may answer', anyone.publicKey.allowCredentials.length === 0)
  const found = answered('authenticate', await browser.authenticate(anyone.publicKey))
  prove('the passkey signs in without a login name', (await finishAuthentication(anyone.end, found)).userId === ada.id)

  const ended = await start(AUTHENTICATION, { loginName: bob.loginName })
  await refused('a passkey of another user', 'PUT', ended.end, found)
  const nobody = await start(AUTHENTICATION, { loginName: `nobody-${run}` })
  await refused('a login name that does not exist', 'PUT', nobody.end, found)

  // what a client must not decide
  const unverified = await start(AUTHENTICATION, { loginName: ada.loginName })
  const lazy = answered('authenticate', await browser.authenticate({ ...unverified.publicKey, userVerification: 'discouraged' }))
  await refused('a sign-in that verified no user', 'PUT', unverified.end, lazy)
  const elsewhere = await start(AUTHENTICATION, { loginName: ada.loginName })
  const moved = await browser.elsewhere(() => browser.authenticate(elsewhere.publicKey))
  await refused('a sign-in from another origin', 'PUT', elsewhere.end, answered('authenticate elsewhere', moved))

  // a copy whose counter is behind
  await second.unplug()
  const copy = await browser.plugIn()
  await copy.put({ ...own, signCount: 0 })
  const cloned = await start(AUTHENTICATION, { loginName: ada.loginName })
  const behind = answered('authenticate', await browser.authenticate(cloned.publicKey))
  await refused('a counter that went backwards', 'PUT', cloned.end, behind)
  const events = await list('/passkey-security/events')
  prove('the suspected copy is a security event',
    events.items.some((event) => event.userId === ada.id && event.eventType === 'PasskeyCloneSuspected'))
  await copy.unplug()

  // an authenticator that cannot verify
  const weak = await browser.plugIn({ transport: 'usb', hasUserVerification: false, isUserVerified: false })
  const strict = await start(registration(bob), undefined)
  // the browser itself makes no discoverable credential without verification: a client that does
  const carelessly = async (ceremony) => answered('register', await browser.register({ ...ceremony.publicKey,
    authenticatorSelection: { residentKey: 'discouraged', userVerification: 'discouraged' } }))
  await refused('a registration that verified no user', 'PUT', strict.end, await carelessly(strict))
  await setOptions({ PasskeyUserVerification: 'discouraged' })
  const relaxed = await start(registration(bob), undefined)
  await finishRegistration(relaxed.end, await carelessly(relaxed))
  prove('it registers where the policy does not ask for it', (await list(credentials(bob))).length === 1)
  await setOptions({ PasskeyUserVerification: 'required' })
  await weak.unplug()

  // the end of a passkey
  const third = await browser.plugIn()
  await third.put({ ...own, signCount: 1000 })
  const last = await start(AUTHENTICATION, {})
  const late = answered('authenticate', await browser.authenticate(last.publicKey))
  await remove(`${credentials(ada)}/${passkey.id}`)
  prove('the passkey is deleted', (await list(credentials(ada))).length === 0)
  await refused('a deleted passkey', 'PUT', last.end, late)
  await setOptions({ PasskeyEnabled: 'false' })
  await refused('a ceremony while passkeys are off', 'POST', AUTHENTICATION, {})
  await setOptions({ PasskeyEnabled: 'true' })
} catch (error) {
  console.error(`FAILED  ${error.message}`)
  process.exitCode = 1
} finally {
  await browser.close()
}

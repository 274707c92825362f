// Checks sign-ins at foreign providers, each behind a proxy on this machine.
//
//   CHANCERY_BASE=http://localhost:8080 CHANCERY_TOKEN=... CHANCERY_SETUP=/console/setup/... \
//     CERTIFICATES=FOLDER PYTHON=FILE KEYCLOAK=FOLDER PUBLIC_PROVIDERS=ORIGIN node check.mjs PROVIDER...
//
// The server is new and may call this machine (CHANCERY_PRIVATE_DESTINATIONS). The token is a SystemAdmin's. CERTIFICATES is a folder
// with a certificate and its key, and those of an AD FS. PYTHON is a Python with oidc-provider-mock, KEYCLOAK a writable copy of
// Keycloak. PUBLIC_PROVIDERS is the origin at which the server expects the providers with fixed addresses, such as Google. CHROMIUM
// is the browser if it is not /usr/bin/chromium, and PICTURES a folder for pictures of docs/connecting-providers.

import { readFileSync } from 'node:fs'
import { launch } from '../browser/chromium.mjs'
import { hold, runAll } from '../browser/sign_in/cases.mjs'
import { googleConnected, isFound } from './console.mjs'
import { comeBackAtOnce, waitForNothing } from './crowd.mjs'
import { openProxy } from './proxy.mjs'
import { openHome, setUp } from './home.mjs'
import { KINDS, walkKind } from './kinds.mjs'
import * as keycloak from './keycloak.mjs'
import * as mockServer from './oauth2_mock_server.mjs'
import * as oidcProvider from './oidc_provider.mjs'
import * as providerMock from './oidc_provider_mock.mjs'
import { ada, guest } from './people.mjs'
import * as standIns from './stand_ins.mjs'
import { comesAgain, walk, wasNeverThere } from './walk.mjs'

const { CERTIFICATES, KEYCLOAK, PYTHON } = process.env
const browser = await launch()
const home = await openHome()
const started = []
const found = []
/** Adds a server that is closed at the end. */
const keep = (server) => started.push(server) && server

/** Runs the checks of a provider; returns Ada's subject at the server. */
async function walked(at) {
  const sub = await walk(browser, at, home)
  found.push({ instance: at.instance, person: ada, sub })
  return sub
}

/** What a check needs: the provider, the instance with its settings, and the proxy in front of it. */
async function way(instance, proxy, provider) {
  const issuer = proxy.issuer + (provider.path ?? '')
  await setUp(instance, { Authority: issuer, ...provider.options })
  return { proxy, instance, provider, issuer }
}

async function ofOidcProvider() {
  const [proxy, bySecret, byKey] = [await openProxy(), await home.open('oidc-provider'), await home.open('oidc-provider by key')]
  const [certificate, key] = ['certificate', 'key'].map((name) => readFileSync(`${CERTIFICATES}/${name}.pem`, 'utf8'))
  const server = keep(await oidcProvider.start(proxy, { secret: bySecret.callback, key: byKey.callback }, certificate))
  const first = await walked(await way(bySecret, proxy, server.bySecret))
  await home.linkCertificate(byKey, 'OidcTokenSigning', { certificate, key })
  const second = await walked(await way(byKey, proxy, server.byKey))
  hold('the same subject by another instance is another person', first !== second, first)
}

async function ofMockServer() {
  const [proxy, instance] = [await openProxy(), await home.open('oauth2-mock-server')]
  const find = (hint) => hint?.startsWith('guest-') ? guest(hint.slice('guest-'.length)) : undefined
  const server = keep(await mockServer.start(proxy, find))
  const at = await way(instance, proxy, server.settings)
  const sub = await walked(at)
  await server.takeNewKey()
  await comesAgain(browser, at, 'a key that is new there is found', sub)
  await comeBackAtOnce({ instance, server }, 64)
  // its discovery document is not cached yet
  const silent = await way(await home.open('silent'), await openProxy(), server.settings)
  await waitForNothing(silent, [instance, silent.instance], 20, home.person)
  const gone = await way(await home.open('gone'), await openProxy(), server.settings)
  gone.proxy.shut()
  await wasNeverThere(browser, gone, home)
}

async function ofProviderMock() {
  const [proxy, instance] = [await openProxy(), await home.open('oidc-provider-mock')]
  const server = keep(await providerMock.start(proxy, PYTHON))
  await walked(await way(instance, proxy, server.settings))
}

async function ofKeycloak() {
  const [proxy, instance] = [await openProxy(), await home.open('Keycloak')]
  const server = keep(await keycloak.start(proxy, instance.callback, KEYCLOAK))
  await walked(await way(instance, proxy, server.settings))
}

async function ofKinds() {
  const [certificate, key] = ['adfs-certificate', 'adfs-key'].map((name) => readFileSync(`${CERTIFICATES}/${name}.pem`, 'utf8'))
  const origin = process.env.PUBLIC_PROVIDERS
  const server = keep(await standIns.start(origin, key))
  found.push(await googleConnected(browser, { origin, server, app: await home.makeApp('A portal') }))
  for (const kind of KINDS) {
    const instance = await home.open(`${kind.name} stand-in`, kind.name)
    if (kind.name === 'AdfsOAuth') await home.linkCertificate(instance, 'AdfsOAuthTokenSigning', { certificate })
    if (kind.name === 'Google') server.registerAtGoogle(instance.callback)
    const provider = { options: { ...standIns.options, ...kind.options?.(origin) }, signIn: kind.signIn ?? standIns.signIn }
    await setUp(instance, provider.options)
    found.push({ instance, person: kind.tells, sub: await walkKind(browser, { instance, provider, kind }) })
  }
}

const providers = {
  'oidc-provider': ofOidcProvider, 'oauth2-mock-server': ofMockServer, 'oidc-provider-mock': ofProviderMock, keycloak: ofKeycloak,
  kinds: ofKinds,
}
const names = process.argv.slice(2)
// also after an error
process.on('exit', () => started.forEach((server) => server.close()))
await runAll(names.map((name) => [name, providers[name]]))
await isFound(browser, found)
await browser.close()
// open proxies and pending responses would keep the process alive
process.exit()

// The types of providers other than OpenID Connect, as stand-ins: sign-ins there, and their results here.

import { hold } from '../browser/sign_in/cases.mjs'
import { platformUser, records } from './home.mjs'
import { ada } from './people.mjs'
import { adfsOptions, signInAtGoogle } from './stand_ins.mjs'
import { failure, goThere, isRestricted, isTriedOut, signIn, signsOut, visit } from './walk.mjs'

/** Each type, the options of its instances, and what it reports about Ada. */
export const KINDS = [
  { name: 'Google', tells: ada, signIn: signInAtGoogle },
  { name: 'Microsoft', tells: ada, tellsTime: true },
  { name: 'Facebook', tells: ada },
  { name: 'Twitter', tells: { name: ada.name, email: '' } },
  { name: 'AdfsOAuth', tells: ada, options: adfsOptions },
]

/** Signs Ada in for the first time; returns her subject at the server. */
async function becomesKnown(page, way) {
  const { instance, kind: { tells } } = way
  const { claims } = await signIn(page, way, ada)
  const person = await platformUser(claims.sub)
  const [identity, ...others] = person.identities
  hold(`${instance.name}: a platform user has the identity`, others.length === 0 && identity.subject === ada.sub
    && identity.idpInstanceId === instance.id, JSON.stringify(person))
  hold(`${instance.name}: what the provider told is told on`, claims.name === tells.name && (claims.email ?? '') === tells.email
    && claims.email_verified !== true && claims.amr.join() === 'fed', JSON.stringify(claims))
  const found = await records(`platformUserId eq "${claims.sub}"`)
  hold(`${instance.name}: the sign-in is on record`, found.length === 1 && found[0].idpInstanceId === instance.id
    && found[0].outcome === 'SignedIn' && found[0].methods === 'fed', JSON.stringify(found))
  return claims.sub
}

/** Runs all checks of a type of provider; returns Ada's subject at the server. */
export async function walkKind(browser, way) {
  const { instance, kind } = way
  let sub
  await visit(browser, (page) => isTriedOut(page, way))
  await visit(browser, async (page) => {
    sub = await becomesKnown(page, way)
    await signsOut(page, way)
    const { claims } = await signIn(page, way, ada)
    hold(`${instance.name}: the next sign-in is the same person's`, claims.sub === sub, JSON.stringify(claims))
  })
  if (!kind.tellsTime) {
    await visit(browser, async (page) => {
      await goThere(page, way, ada, { max_age: '600' })
      await failure(page).waitFor()
      hold(`${instance.name}: nobody is sent there whose time of sign-in it does not tell`, true)
    })
  }
  await isRestricted(browser, way, sub)
  return sub
}

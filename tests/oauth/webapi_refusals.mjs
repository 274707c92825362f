// What must not become tokens: oauth4webapi shows codes wrongly, and is shown answers that are not for it.
//
//   CHANCERY_BASE=... CHANCERY_APPS=FILE node webapi_refusals.mjs

import * as oauth from 'oauth4webapi'

import { Browser } from './browser.mjs'
import { prove } from './prove.mjs'
import { App, issuers, person, refusal } from './webapi_app.mjs'

// signs in once, and gets codes without a page from then on
const browser = new Browser()
const everyone = []
for (const [kind, registered] of Object.entries(person.apps)) {
  for (const [place, issuer] of Object.entries(issuers)) {
    everyone.push({ about: `${kind} at ${place}`, kind, place, app: await App.at(issuer, registered) })
  }
}

for (const { about, kind, place, app } of everyone) {
  const twice = await app.ask(browser)
  const parameters = app.read(twice)
  const tokens = await app.redeem(twice, parameters)
  const subject = oauth.getValidatedIdTokenClaims(tokens).sub
  const replayed = await refusal(() => app.redeem(twice, parameters))
  prove(`${about}: a code is good once`, replayed === 'invalid_grant', replayed)
  const dead = await refusal(() => app.about(subject, tokens))
  prove(`${about}: shown twice, its token ends`, dead === 'invalid_token', dead)

  const wrong = {
    'another code_verifier': { verifier: twice.verifier },
    'another redirect_uri': { redirect: person.goodbye },
  }
  for (const [what, changed] of Object.entries(wrong)) {
    const asked = await app.ask(browser)
    const told = await refusal(() => app.redeem({ ...asked, ...changed }, app.read(asked)))
    prove(`${about}: not with ${what}`, told === 'invalid_grant', told)
  }

  const asked = await app.ask(browser)
  const state = await refusal(() => app.read({ ...asked, state: twice.state }))
  prove(`${about}: no answer to another state`, state === 'unexpected "state" response parameter value', state)
  const elsewhere = everyone.find((other) => other.kind === kind && other.place !== place)
  const mixed = await refusal(() => elsewhere.app.read(asked))
  const isFound = mixed === 'unexpected "iss" (issuer) response parameter value'
  prove(`${about}: no answer of the other issuer`, isFound, mixed)
  const stranger = everyone.find((other) => other.kind !== kind && other.place === place)
  const stolen = await refusal(() => stranger.app.redeem(asked, stranger.app.read(asked)))
  prove(`${about}: no code of the other app`, stolen === 'invalid_grant', stolen)
}

// who mixes issuers up passes the code on to the other one's token endpoint
const crossed = {}
for (const { about, kind, place, app } of everyone) {
  const elsewhere = everyone.find((other) => other.kind === kind && other.place !== place)
  const asked = await app.ask(browser)
  crossed[about] = await refusal(() => elsewhere.app.redeem(asked, app.read(asked)))
}
prove(
  'a code is good at its own issuer alone',
  Object.values(crossed).every((told) => told === 'invalid_grant'),
  crossed,
)

// oauth4webapi, which is strict, judges the answers of a sign-in; the person signs out by the app's ID token.
//
//   CHANCERY_BASE=... CHANCERY_APPS=FILE node webapi_sign_in.mjs

import { createHash } from 'node:crypto'
import * as jose from 'jose'
import * as oauth from 'oauth4webapi'

import { prove } from './prove.mjs'
import { App, issuers, person, refusal } from './webapi_app.mjs'

// oauth4webapi leaves at_hash alone where the ID token comes from the token endpoint
function halfHash(token, algorithm) {
  const digest = createHash(`sha${algorithm.slice(-3)}`).update(token).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

for (const [kind, registered] of Object.entries(person.apps)) {
  for (const [place, issuer] of Object.entries(issuers)) {
    const about = `${kind} at ${place}`
    const app = await App.at(issuer, registered)
    const asked = await app.ask()
    prove(`${about}: a page asks for the password`, asked.isAsked, asked.page)
    const parameters = app.read(asked)
    prove(`${about}: an answer with state and iss`, parameters.get('iss') === issuer, [...parameters])
    const tokens = await app.redeem(asked, parameters)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    prove(`${about}: an ID token, signed, for the nonce`, claims.nonce === asked.nonce, claims)
    const { alg } = jose.decodeProtectedHeader(tokens.id_token)
    prove(`${about}: it names the access token`, claims.at_hash === halfHash(tokens.access_token, alg), claims)
    const told = await app.about(claims.sub, tokens)
    prove(`${about}: the person's claims`, told.email === `${person.name}@example.com`, told)

    const again = await app.ask(asked.browser, { prompt: 'none' })
    const renewed = oauth.getValidatedIdTokenClaims(await app.redeem(again, app.read(again)))
    const isSame = renewed.sub === claims.sub && renewed.sid === claims.sid
    prove(`${about}: the same person and session without a page`, isSame, renewed)

    const leaving = new URL(app.server.end_session_endpoint)
    leaving.search = new URLSearchParams({
      id_token_hint: tokens.id_token,
      post_logout_redirect_uri: person.goodbye,
      state: asked.state,
    })
    const gone = await asked.browser.send(leaving)
    prove(`${about}: signed out without a page`, gone.left?.href === `${person.goodbye}?state=${asked.state}`, gone)
    const dead = await refusal(() => app.about(claims.sub, tokens))
    prove(`${about}: the access token has ended`, dead === 'invalid_token', dead)
    const unknown = await app.ask(asked.browser, { prompt: 'none' })
    const needed = await refusal(() => app.read(unknown))
    prove(`${about}: and no longer known`, needed === 'login_required', needed)
  }
}

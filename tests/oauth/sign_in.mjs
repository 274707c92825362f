// openid-client signs a person in and out, through the pages, without an adjustment of ours.
//
//   CHANCERY_BASE=... CHANCERY_APPS=FILE node sign_in.mjs

import * as openid from 'openid-client'

import { Browser } from './browser.mjs'
import { apps, base, prove } from './prove.mjs'

const { person } = apps

for (const [name, app] of Object.entries(person.apps)) {
  for (const issuer of [base, `${base}/t/${person.tenant}`]) {
    const about = `${name} at ${issuer === base ? 'the installation' : 'the tenant'}`
    const authentication = app.secret ? openid.ClientSecretBasic(app.secret) : openid.None()
    const config = await openid.discovery(new URL(issuer), app.id, undefined, authentication, {
      execute: [openid.allowInsecureRequests], // loopback
    })
    const verifier = openid.randomPKCECodeVerifier()
    const [state, nonce] = [openid.randomState(), openid.randomNonce()]
    const request = openid.buildAuthorizationUrl(config, {
      redirect_uri: person.callback,
      scope: 'openid profile email',
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    })
    const browser = new Browser()
    const page = await browser.send(request)
    prove(`${about}: a page asks for the password`, page.status === 200 && page.html.includes('current-password'))
    const { left } = await browser.submit(page, { username: person.name, password: person.password })
    prove(`${about}: back to the app`, left?.href.startsWith(person.callback), left)
    const expected = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    const tokens = await openid.authorizationCodeGrant(config, left, expected)
    prove(`${about}: an ID token`, tokens.claims().amr.join() === 'pwd', tokens.claims())
    const told = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
    prove(`${about}: the person's claims`, told.preferred_username === person.name, told)

    const silent = await browser.send(new URL(`${request}&prompt=none`))
    prove(`${about}: again without a page`, silent.left?.searchParams.has('code'), silent)
    const leaving = openid.buildEndSessionUrl(config, { post_logout_redirect_uri: person.goodbye })
    const asked = await browser.send(leaving)
    const gone = await browser.submit(asked, { decision: 'allow' })
    prove(`${about}: signed out`, gone.left?.href === person.goodbye, gone)
    const after = await browser.send(new URL(`${request}&prompt=none`))
    prove(`${about}: and no longer known`, after.left?.searchParams.get('error') === 'login_required', after)
  }
}

// A client app that trusts one issuer and lets oauth4webapi judge all that the issuer answers.

import * as oauth from 'oauth4webapi'

import { Browser } from './browser.mjs'
import { apps, base } from './prove.mjs'

export const { person } = apps
export const issuers = { 'the installation': base, 'the tenant': `${base}/t/${person.tenant}` }
// loopback
export const insecure = { [oauth.allowInsecureRequests]: true }

export class App {
  static async at(issuer, app) {
    const address = new URL(issuer)
    const answer = await oauth.discoveryRequest(address, insecure)
    return Object.assign(new App(), {
      server: await oauth.processDiscoveryResponse(address, answer),
      client: { client_id: app.id },
      authentication: app.secret ? oauth.ClientSecretBasic(app.secret) : oauth.None(),
    })
  }

  // Sends a browser to sign in, which shows the page only to who is not known yet.
  async ask(browser = new Browser(), more = {}) {
    const verifier = oauth.generateRandomCodeVerifier()
    const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
    const request = new URL(this.server.authorization_endpoint)
    request.search = new URLSearchParams({
      client_id: this.client.client_id,
      redirect_uri: person.callback,
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      // so that auth_time is judged, too
      max_age: '300',
      state,
      nonce,
      ...more,
    })
    let page = await browser.send(request)
    const isAsked = page.html?.includes('current-password') ?? false
    if (isAsked) page = await browser.submit(page, { username: person.name, password: person.password })
    return { browser, isAsked, left: page.left, page, verifier, state, nonce }
  }

  // The answer's parameters: they are not given out for another `state` or `iss` than is expected.
  read(asked) {
    return oauth.validateAuthResponse(this.server, this.client, asked.left, asked.state)
  }

  async redeem({ nonce, verifier, redirect = person.callback }, parameters) {
    const { server, client, authentication } = this
    const code = [parameters, redirect, verifier, insecure]
    const answer = await oauth.authorizationCodeGrantRequest(server, client, authentication, ...code)
    const expected = { expectedNonce: nonce, maxAge: 300, requireIdToken: true }
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, expected)
    await oauth.validateApplicationLevelSignature(server, answer, insecure)
    return tokens
  }

  async about(subject, tokens) {
    const answer = await oauth.userInfoRequest(this.server, this.client, tokens.access_token, insecure)
    return oauth.processUserInfoResponse(this.server, this.client, subject, answer)
  }
}

// The error of an answer that refuses, or what oauth4webapi finds wrong in an answer.
export async function refusal(asking) {
  try {
    await asking()
  } catch (problem) {
    return problem.error ?? problem.cause?.[0]?.parameters?.error ?? problem.message
  }
  return 'not refused'
}

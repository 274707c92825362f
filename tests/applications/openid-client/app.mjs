// Express with openid-client, as its documentation describes the authorization code flow.

import express from 'express'
import session from 'express-session'
import * as client from 'openid-client'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, SITE, PORT } = process.env
// loopback
const settings = { execute: [client.allowInsecureRequests] }
const config = await client.discovery(new URL(ISSUER), CLIENT_ID, CLIENT_SECRET, undefined, settings)
const app = express()
app.use(session({ secret: 'a text for the sessions of this check', resave: false, saveUninitialized: false }))

app.get('/', (request, answer) => {
  const { person } = request.session
  if (!person) return answer.redirect('/login')
  answer.json({ name: person.name, groups: person.groups, claims: person })
})
app.get('/login', async (request, answer) => {
  const verifier = client.randomPKCECodeVerifier()
  const state = client.randomState()
  Object.assign(request.session, { verifier, state })
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: `${SITE}/callback`,
    scope: 'openid profile email',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
  })
  answer.redirect(address.href)
})
app.get('/callback', async (request, answer) => {
  const { verifier, state } = request.session
  const address = new URL(request.originalUrl, SITE)
  const tokens = await client.authorizationCodeGrant(config, address, { pkceCodeVerifier: verifier, expectedState: state })
  request.session.person = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
  request.session.hint = tokens.id_token
  answer.redirect('/')
})
app.get('/logout', (request, answer) => {
  const told = { post_logout_redirect_uri: `${SITE}/bye`, id_token_hint: request.session.hint }
  request.session.destroy(() => answer.redirect(client.buildEndSessionUrl(config, told).href))
})
app.get('/bye', (request, answer) => answer.send('Bye'))
app.listen(Number(PORT), '127.0.0.1')

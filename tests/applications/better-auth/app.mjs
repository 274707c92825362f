// Express with Better Auth, as its documentation sets up a provider of one's own.

import { betterAuth } from 'better-auth'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, SITE, PORT } = process.env
const auth = betterAuth({
  baseURL: SITE,
  secret: 'a long text for the sessions of this check',
  telemetry: { enabled: false },
  user: { additionalFields: { groups: { type: 'string[]', required: false }, department: { type: 'string', required: false } } },
  plugins: [genericOAuth({
    config: [{
      providerId: 'chancery',
      discoveryUrl: `${ISSUER}/.well-known/openid-configuration`,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      scopes: ['openid', 'profile', 'email'],
      mapProfileToUser: ({ groups, department }) => ({ groups, department }),
    }],
  })],
})
const app = express()
app.all('/api/auth/*path', toNodeHandler(auth))

/** Hands on an answer of the library: its cookies, and where the browser goes next. */
function lead(answer, told, address) {
  answer.setHeader('Set-Cookie', told.headers.getSetCookie())
  return answer.redirect(address)
}

app.get('/', async (request, answer) => {
  const headers = fromNodeHeaders(request.headers)
  const session = await auth.api.getSession({ headers })
  if (session) {
    const { name, groups } = session.user
    return answer.json({ name, groups, claims: session.user })
  }
  const told = await auth.api.signInSocial({ body: { provider: 'chancery', callbackURL: '/' }, headers, asResponse: true })
  return lead(answer, told, (await told.json()).url)
})
app.get('/logout', async (request, answer) => {
  const told = await auth.api.signOut({ headers: fromNodeHeaders(request.headers), asResponse: true })
  return lead(answer, told, '/bye')
})
app.get('/bye', async (request, answer) => {
  const session = await auth.api.getSession({ headers: fromNodeHeaders(request.headers) })
  answer.send(session ? 'Still here' : 'Bye')
})
app.listen(Number(PORT), '127.0.0.1')

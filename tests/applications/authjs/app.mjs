// Express with Auth.js, as its documentation sets up a provider of its own. Names come from the ID token.

import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, PORT } = process.env
const settings = {
  secret: 'a text for the sessions of this check',
  trustHost: true,
  providers: [{ id: 'chancery', name: 'Chancery', type: 'oidc', issuer: ISSUER, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET }],
  callbacks: {
    jwt: ({ token, profile }) => profile ? { ...token, profile } : token,
    session: ({ session, token }) => ({ ...session, profile: token.profile }),
  },
}
const app = express()
app.use('/auth', ExpressAuth(settings))
app.get('/', async (request, answer) => {
  const session = await getSession(request, settings)
  if (!session) return answer.redirect('/auth/signin')
  const { groups } = session.profile
  return answer.json({ name: session.user.name, groups, claims: session.profile })
})
app.listen(Number(PORT), '127.0.0.1')

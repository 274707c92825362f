// Express with express-openid-connect, as its documentation sets up the code flow.

import express from 'express'
import openid from 'express-openid-connect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, SITE, PORT } = process.env
const app = express()
app.get('/bye', (request, answer) => answer.send('Bye'))
app.use(openid.auth({
  issuerBaseURL: ISSUER,
  baseURL: SITE,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  secret: 'a text for the sessions of this check',
  idpLogout: true,
  routes: { postLogoutRedirect: '/bye' },
  authorizationParams: { response_type: 'code', scope: 'openid profile email' },
}))
app.get('/', (request, answer) => {
  const { name, groups } = request.oidc.user
  answer.json({ name, groups, claims: request.oidc.idTokenClaims })
})
app.listen(Number(PORT), '127.0.0.1')

// Express with Passport and passport-openidconnect, as its documentation sets it up. What it says of the person comes from the
// ID token: it does not ask for more unless it is told to.

import express from 'express'
import session from 'express-session'
import passport from 'passport'
import Strategy from 'passport-openidconnect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, SITE, PORT } = process.env
const app = express()
app.use(session({ secret: 'a text for the sessions of this check', resave: false, saveUninitialized: false }))
app.use(passport.session())
passport.use(new Strategy({
  issuer: ISSUER,
  authorizationURL: `${ISSUER}/connect/authorize`,
  tokenURL: `${ISSUER}/connect/token`,
  userInfoURL: `${ISSUER}/connect/userinfo`,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  callbackURL: `${SITE}/callback`,
  scope: ['profile', 'email'],
}, (issuer, profile, context, idToken, done) => {
  const claims = JSON.parse(Buffer.from(idToken.split('.')[1], 'base64url'))
  done(null, { name: profile.displayName, groups: claims.groups, claims })
}))
passport.serializeUser((person, done) => done(null, person))
passport.deserializeUser((person, done) => done(null, person))

app.get('/', (request, answer) => request.user ? answer.json(request.user) : answer.redirect('/login'))
app.get('/login', passport.authenticate('openidconnect'))
app.get('/callback', passport.authenticate('openidconnect', { successRedirect: '/' }))
app.get('/logout', (request, answer, next) => request.logout((wrong) => wrong ? next(wrong) : answer.redirect('/bye')))
app.get('/bye', (request, answer) => answer.send(request.user ? 'Still here' : 'Bye'))
app.listen(Number(PORT), '127.0.0.1')

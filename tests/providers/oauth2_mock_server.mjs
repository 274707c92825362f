// oauth2-mock-server (npm). It has no pages: it signs in the person in `login_hint`, or else the last one of `arrives`.

import { createServer } from 'node:http'
import { Events, OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server'
import { ada, claimsOf } from './people.mjs'
import { listenAnywhere } from './ports.mjs'

const DOCUMENT = '/.well-known/openid-configuration'

/** Starts it behind a proxy. `find` answers the person whom a `login_hint` names. */
export async function start(proxy, find) {
  const codes = new Map()
  const state = { person: ada, pause: 0, waiting: 0, mostWaiting: 0 }
  let service
  const subjectOf = ({ headers }) => JSON.parse(Buffer.from(headers.authorization.split('.')[1], 'base64url')).sub

  /** From now on it signs by a new key alone. */
  const takeNewKey = async () => {
    const issuer = new OAuth2Issuer()
    issuer.url = proxy.issuer
    await issuer.keys.generate('RS256')
    service = new OAuth2Service(issuer, { wellKnownDocument: '/document' })
    service.on(Events.BeforeAuthorizeRedirect, ({ url }, { query }) => {
      codes.set(url.searchParams.get('code'), find(query.login_hint) ?? state.person)
    })
    service.on(Events.BeforeTokenSigning, ({ payload }, { body }) => {
      const person = codes.get(body.code)
      Object.assign(payload, claimsOf(person), { sub: person.sub })
    })
    service.on(Events.BeforeUserinfo, (told, request) => (told.body = { sub: subjectOf(request) }))
  }

  /** Adds to its discovery document the client authentication, which it does not list. Its token endpoint accepts any. */
  const showDocument = async (response) => {
    const document = await (await fetch(`http://127.0.0.1:${proxy.target}/document`)).json()
    document.token_endpoint_auth_methods_supported = ['client_secret_basic']
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  }

  const server = createServer((request, response) => {
    if (request.url === DOCUMENT) return showDocument(response)
    if (request.url !== '/token') return service.requestHandler(request, response)
    state.waiting += 1
    state.mostWaiting = Math.max(state.mostWaiting, state.waiting)
    setTimeout(() => {
      state.waiting -= 1
      service.requestHandler(request, response)
    }, state.pause)
  })
  await takeNewKey()
  proxy.target = await listenAnywhere(server)
  return {
    close: () => server.close(),
    state,
    takeNewKey,
    settings: {
      options: { ClientId: 'chancery', ClientSecret: 'quiet' },
      arrives: (person) => (state.person = person),
      signIn: () => {},
    },
  }
}

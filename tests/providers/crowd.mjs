// Many people at once, without a browser of their own: cookies, redirects and links.

import { base } from '../browser/api.mjs'
import { hold } from '../browser/sign_in/cases.mjs'
import { PASSWORD } from '../browser/sign_in/home.mjs'
import { guest } from './people.mjs'
import { pause } from './ports.mjs'

const unescaped = (text) => text.replaceAll('&amp;', '&').replaceAll('&#x2f;', '/')

/** A client with the cookies of each host. */
class Visitor {
  jars = new Map()

  async send(address, body) {
    const { host } = new URL(address)
    const jar = this.jars.get(host) ?? new Map()
    this.jars.set(host, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...(cookie && { cookie }), ...(body && { 'sec-fetch-site': 'same-origin' }) }
    const answer = await fetch(address, { method: body ? 'POST' : 'GET', body, redirect: 'manual', headers })
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/)
      if (value) jar.set(name, value)
      else jar.delete(name)
    }
    return answer
  }

  /** Opens a page and follows redirects; stops at an address with this prefix and returns it. */
  async open(address, until, body) {
    const answer = await this.send(address, body)
    const next = answer.headers.get('location') ?? answer.headers.get('refresh')?.split('url=')[1]
    const html = await answer.text()
    if (!next) return { address, status: answer.status, html }
    const led = new URL(unescaped(next), address).href
    return led.startsWith(until) ? { address: led } : this.open(led, until)
  }
}

/** The target of the button of this name. */
function link(page, name) {
  const links = [...page.html.matchAll(/<a class="button" href="([^"]*)">(.*?)<\/a>/gs)]
  const found = links.find(([, , inside]) => inside.replace(/<[^>]*>/g, '') === `Continue with ${name}`)
  if (!found) throw new Error(`${page.address} (${page.status}) has no button for ${name}: ${page.html.slice(0, 500)}`)
  return new URL(unescaped(found[1]), page.address).href
}

/** Opens the page that asks for a password; what signs in there answers the claims that the app gets. */
async function passwordPage({ app }) {
  const visitor = new Visitor()
  const request = await app.request()
  const page = await visitor.open(request.address, app.callback)
  const [, csrf] = page.html.match(/name="csrf" value="([^"]*)"/)
  const [, action] = page.html.match(/<form method="post" action="([^"]*)"/)
  return async (username) => {
    const form = new URLSearchParams({ csrf, username, password: PASSWORD })
    const back = await visitor.open(new URL(unescaped(action), page.address).href, app.callback, form)
    return (await app.redeem(back.address, request)).claims()
  }
}

/** Asks whether the server is ready until `over`; how long it took each time, in ms. */
async function probe(over) {
  const times = []
  while (!over()) {
    const began = performance.now()
    const answer = await fetch(`${base}/health/ready`)
    await answer.text()
    times.push(answer.ok ? performance.now() - began : Infinity)
    await pause(50)
  }
  return times
}

/** This many people come back from the provider at once. */
export async function comeBackAtOnce({ instance, server }, number) {
  const { app, name } = instance
  const ways = await Promise.all(Array.from({ length: number }, async (_, index) => {
    const person = guest(index)
    const visitor = new Visitor()
    const request = await app.request({ login_hint: person.sub })
    const page = await visitor.open(request.address, app.callback)
    const back = await visitor.open(link(page, name), instance.callback)
    return { person, visitor, request, back }
  }))
  server.state.pause = 500
  let over = false
  const probing = probe(() => over)
  const ended = await Promise.allSettled(ways.map(async ({ visitor, back }) => {
    const told = await visitor.open(back.address, app.callback)
    if (told.html !== undefined) throw new Error(`${told.status}: ${told.html.replaceAll(/<[^>]*>|\s+/g, ' ')}`)
    return told.address
  }))
  over = true
  server.state.pause = 0
  const failed = ended.filter(({ status }) => status === 'rejected')
  hold(`${name}: ${number} people come back at once, up to ${server.state.mostWaiting} at the token endpoint at a time`,
    failed.length === 0, `${failed.length} failed: ${failed[0]?.reason.message.slice(0, 500)}`)
  const times = await probing
  const slowest = Math.max(...times)
  hold(`${name}: the server says meanwhile that it is ready, ${times.length} times, within ${Math.round(slowest)} ms`, slowest < 1000)
  const told = await Promise.all(ended.map(async ({ value }, index) => (await app.redeem(value, ways[index].request)).claims()))
  const subjects = new Set(told.map(({ sub }) => sub))
  const isRight = told.every((claims, index) => claims.email === ways[index].person.email)
  hold(`${name}: each of them is the right person`, subjects.size === number && isRight, JSON.stringify(told[0]))
}

/** This many people wait for a provider that does not respond; others sign in meanwhile. */
export async function waitForNothing({ proxy, instance }, others, number, person) {
  const pages = await Promise.all(others.map(passwordPage))
  const clicks = await Promise.all(Array.from({ length: number }, async () => {
    const visitor = new Visitor()
    const page = await visitor.open((await instance.app.request()).address, instance.app.callback)
    return () => visitor.open(link(page, instance.name), instance.app.callback)
  }))
  const waiting = clicks.map((click) => click())
  let ended = 0
  for (const one of waiting) one.finally(() => ended++).catch(() => {})
  while (proxy.accepted === 0 && ended === 0) await pause(20)
  const claims = await Promise.all(pages.map((signIn) => signIn(person)))
  hold(`${instance.name}: others sign in by a password while ${number - ended} wait`,
    ended < number && claims.every(({ amr }) => amr.join() === 'pwd'), JSON.stringify(claims))
  const shown = await Promise.all(waiting)
  hold(`${instance.name}: for ${number} people who wait for a provider that says nothing it is asked once`, proxy.accepted === 1, `${proxy.accepted} times`)
  const isLedBack = (page) => page.html?.includes('The sign-in there did not work') && link(page, instance.name)
  hold(`${instance.name}: who waited is led back to the page`, shown.every(isLedBack), shown.find((page) => !isLedBack(page))?.html?.slice(0, 500))
}

// Somebody in front of a browser of their own. Whatever they see is watched: what each page of the server
// is sent with, what the browser complains of, and what is loaded from where.

import { base } from '../api.mjs'
import { PASSWORD } from './home.mjs'

/** What is wrong with the headers of a page. */
function headerFaults(headers, isPosted) {
  const policy = new Map((headers['content-security-policy'] ?? '').split(';').map((part) => {
    const [name, ...sources] = part.trim().split(/\s+/)
    return [name, sources.join(' ')]
  }))
  // a page has one script; one that posts its form to a client app cannot be held to this server
  const wanted = { 'default-src': "'none'", 'script-src': `${base}/signin/${isPosted ? 'post' : 'passkey'}.js`, 'script-src-elem': undefined,
    'frame-ancestors': "'none'", 'base-uri': "'none'", 'form-action': isPosted ? undefined : "'self'" }
  const faults = Object.entries(wanted).filter(([name, value]) => policy.get(name) !== value)
    .map(([name]) => `${name} is ${policy.get(name)}`)
  if (/unsafe|\*/.test(headers['content-security-policy'])) faults.push('the policy is lax')
  for (const [name, value] of [['referrer-policy', 'no-referrer'], ['x-content-type-options', 'nosniff'],
    ['cache-control', 'no-store']]) {
    if (headers[name] !== value) faults.push(`${name} is ${headers[name]}`)
  }
  return faults
}

export class Visitor {
  faults = []
  loading = []

  /** Opens a browser of somebody who reads this language. */
  static async enter(browser, { language = 'en', script = true, scheme = 'light', motion = 'no-preference' } = {}) {
    const visitor = new Visitor()
    visitor.language = language
    visitor.context = await browser.newContext({
      locale: language === 'de' ? 'de-DE' : 'en-GB', javaScriptEnabled: script, colorScheme: scheme,
      reducedMotion: motion, viewport: { width: 1280, height: 800 },
    })
    visitor.page = await visitor.open()
    return visitor
  }

  /** Lets somebody do something in a browser of their own. Where it fails, what the browser complained of says why. */
  static async visit(browser, who, run) {
    const visitor = await Visitor.enter(browser, who)
    try {
      await run(visitor)
    } catch (error) {
      const reason = error.message.split('\n')[0]
      const shown = await visitor.page.locator('main').innerText({ timeout: 200 }).catch(() => 'no page of the server')
      throw new Error([`${reason} (${visitor.page.url()} shows ${shown.replaceAll('\n', ' ')})`, ...(await visitor.complaints())].join('\n        '))
    } finally {
      await visitor.context.close()
    }
  }

  /** Opens one more tab. */
  async open() {
    const page = await this.context.newPage()
    page.on('console', (message) => {
      // that a page was answered with a status of failure is expected of some; cases look at it
      const isOfPage = message.text().startsWith('Failed to load resource') && message.location().url === page.url()
      if (message.type() === 'error' && !isOfPage) this.faults.push(`the console shows: ${message.text()}`)
    })
    page.on('pageerror', (error) => this.faults.push(`the console shows: ${error.message}`))
    page.on('response', (response) => {
      const request = response.request()
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) this.answer = response
      if (response.url().startsWith(base)) this.loading.push(this.#watch(response, this.isPostedOn).catch(() => {}))
    })
    return page
  }

  async #watch(response, isPostedOn) {
    const headers = await response.allHeaders()
    if (!headers['content-type']?.startsWith('text/html')) return
    const faults = headerFaults(headers, isPostedOn)
    this.faults.push(...faults.map((fault) => `${new URL(response.url()).pathname}: ${fault}`))
  }

  /** What the page in front was answered with. */
  shown() {
    return { status: this.answer.status(), kind: this.answer.headers()['content-type'] ?? '' }
  }

  /** Fills the password page in, with a name and a password, and sends it. */
  async signIn(name, password = PASSWORD, page = this.page) {
    await page.fill('#username', name)
    await page.fill('#password', password)
    await this.press(page.locator('button.main'), page)
  }

  /** Presses something that leads to another page, and waits for it. */
  async press(what, page = this.page) {
    await Promise.all([page.waitForEvent('framenavigated'), what.click()])
    await page.waitForLoadState()
  }

  /** Waits until the browser is back at the client app; its answer. */
  async arrived(request, page = this.page) {
    await page.waitForURL((url) => url.href.startsWith(request.callback))
    return new URL(page.url()).searchParams
  }

  /** Begins a sign-in and completes it. */
  async goThrough(request, name) {
    await this.page.goto(request.address)
    await this.signIn(name)
    return this.arrived(request)
  }

  /** What was wrong with anything that was seen since this was asked last. */
  async complaints() {
    await Promise.all(this.loading)
    return [...new Set(this.faults.splice(0))]
  }
}

// A browser without script: cookies, redirects within the server, forms.

import { base } from './prove.mjs'

export class Browser {
  cookies = new Map()

  // A page of the server, or the address outside of it that the browser has left for. Like Chromium it holds where a
  // form is redirected to what the form's page says in `form-action`.
  async send(address, body, isHeld = false) {
    const shown = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(address, {
      method: body ? 'POST' : 'GET',
      body,
      redirect: 'manual',
      headers: { ...(shown && { cookie: shown }), ...(body && { 'sec-fetch-site': 'same-origin' }) },
    })
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/)
      if (value) this.cookies.set(name, value)
      else this.cookies.delete(name)
    }
    const redirect = answer.headers.get('location')
    const next = redirect ?? answer.headers.get('refresh')?.split('url=')[1]
    if (redirect && isHeld && !new URL(next, address).href.startsWith(`${base}/`)) return { blocked: next }
    if (next && !new URL(next, address).href.startsWith(`${base}/`)) return { left: new URL(next) }
    if (next) return this.send(new URL(next, address), undefined, isHeld && redirect)
    const holds = answer.headers.get('content-security-policy')?.includes("form-action 'self'")
    return { address, html: await answer.text(), status: answer.status, holds }
  }

  async submit(page, fields) {
    const text = (pattern) => page.html.match(pattern)?.[1].replaceAll('&amp;', '&').replaceAll('&#x2f;', '/')
    const action = new URL(text(/action="([^"]*)"/), page.address)
    const form = new URLSearchParams({ csrf: text(/name="csrf" value="([^"]*)"/), ...fields })
    return this.send(action, form, page.holds)
  }
}

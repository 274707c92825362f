// The server's interface, as far as the checks need it.

export const base = process.env.CHANCERY_BASE?.replace(/\/$/, '')
const token = process.env.CHANCERY_TOKEN
if (!base || !token) {
  console.error('CHANCERY_BASE and CHANCERY_TOKEN (of a SystemAdmin) must be set')
  process.exit(2)
}
export const administration = '/api/userstore/v2/default/administration'
const options = '/api/management/v2/Option'

/** Says that something holds, or ends the run. */
export function prove(what, holds, detail = '') {
  if (!holds) throw new Error(`${what}${detail === '' ? '' : `: ${detail}`}`)
  console.log(`ok      ${what}`)
}

async function send(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await answer.text()
  let json
  try {
    json = text === '' ? undefined : JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: answer.status, kind: answer.headers.get('content-type') ?? '', text, json }
}

/** Calls the server and takes no other status. */
export async function call(method, path, body, status) {
  const answer = await send(method, path, body)
  if (answer.status !== status) {
    throw new Error(`${method} ${path} answered ${answer.status} instead of ${status}: ${answer.text.slice(0, 500)}`)
  }
  return answer.json
}

/** Calls the server and wants a refusal, of one of the statuses when some are named. */
export async function refused(what, method, path, body, statuses = []) {
  const answer = await send(method, administration + path, body)
  const right = answer.status >= 400 && answer.status < 500 && answer.kind.startsWith('application/problem+json')
  prove(
    `${what} is refused (${answer.status})`,
    right && (statuses.length === 0 || statuses.includes(answer.status)),
    `${answer.status} ${answer.kind} ${answer.text.slice(0, 500)}`,
  )
}

/** Sets options of the user store, or those that a further condition names. */
export async function setOptions(values, condition = '') {
  for (const [name, value] of Object.entries(values)) {
    const rows = await call('GET', `${options}?filter=${encodeURIComponent(`name eq "${name}"${condition}`)}`, undefined, 200)
    if (rows.length !== 1) throw new Error(`there are ${rows.length} options named ${name}`)
    const [{ id, concurrencyToken }] = rows
    await call('PATCH', `${options}/${id}`, { value, concurrencyToken }, 202)
  }
}

export const createUser = (loginName) => call('POST', `${administration}/User`, { loginName }, 201)
export const list = (path) => call('GET', administration + path, undefined, 200)
export const remove = (path) => call('DELETE', administration + path, undefined, 204)

/** Starts a ceremony; answers its options and where it ends. */
export async function start(path, body) {
  const started = await call('POST', administration + path, body, 200)
  if (typeof started.ceremonyId !== 'string' || typeof started.publicKey?.challenge !== 'string') {
    throw new Error(`POST ${path} answered no ceremony: ${JSON.stringify(started)}`)
  }
  return { publicKey: started.publicKey, end: `${path}/${started.ceremonyId}` }
}

export const finishRegistration = (end, answer) => call('PUT', administration + end, answer, 201)
export const finishAuthentication = (end, answer) => call('PUT', administration + end, answer, 200)

// oidc-provider-mock (PyPI): a page asks for the subject.

import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { PATIENCE } from '../browser/chromium.mjs'
import { ada, alan, claimsOf } from './people.mjs'
import { freePort, pause } from './ports.mjs'

const answers = (port) => new Promise((told) => {
  const socket = connect(port, '127.0.0.1', () => told(true) ?? socket.destroy())
  socket.on('error', () => told(false))
})

/** Starts it behind a proxy, by this Python. */
export async function start(proxy, python) {
  const port = await freePort()
  const people = [ada, alan].flatMap((person) => ['--user-claims', JSON.stringify({ sub: person.sub, ...claimsOf(person) })])
  const said = []
  const program = spawn(python, ['-m', 'oidc_provider_mock', '--port', port, '--require-nonce', ...people])
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (text) => said.push(text))
  for (const end = Date.now() + PATIENCE; !(await answers(port)); await pause(100)) {
    if (program.exitCode === null && Date.now() < end) continue
    program.kill()
    throw new Error(`oidc-provider-mock does not start: ${said.join('')}`)
  }
  proxy.target = port
  const signIn = async (page, person) => {
    await page.fill('[name=sub]', person.sub)
    await page.getByRole('button', { name: 'Authorize' }).click()
  }
  return {
    close: () => program.kill(),
    settings: { tellsAuthTime: true, options: { ClientId: 'chancery', ClientSecret: 'quiet' }, signIn },
  }
}

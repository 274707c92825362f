// What the checks share: the server, the client apps that prepare.py made, and how a thing that holds is told.

import { readFileSync } from 'node:fs'

export const base = process.env.CHANCERY_BASE.replace(/\/$/, '')
export const apps = JSON.parse(readFileSync(process.env.CHANCERY_APPS, 'utf8'))

export function prove(what, holds, detail = '') {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(detail)}`)
  console.log(`ok      ${what}`)
}

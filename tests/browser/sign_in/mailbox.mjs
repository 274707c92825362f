// A mail server of this machine, which keeps what it is sent.

import { createServer } from 'node:net'
import { PATIENCE } from '../chromium.mjs'

/** The text of a mail, of its parts if it has several. */
function textOf(raw) {
  const [head, ...rest] = raw.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  const header = (name) => head.replaceAll(/\r\n[ \t]+/g, ' ').match(new RegExp(`^${name}: *(.*)$`, 'im'))?.[1] ?? ''
  const boundary = header('content-type').match(/boundary="?([^";]+)/i)?.[1]
  if (boundary) return body.split(`--${boundary}`).slice(1, -1).map((part) => textOf(part.replace(/^\r\n/, ''))).join('\n')
  const encoding = header('content-transfer-encoding').trim().toLowerCase()
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding !== 'quoted-printable') return body
  const bytes = body.replaceAll(/=\r\n/g, '').replaceAll(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

/** Opens the mail server (RFC 5321, as far as a client needs it that has one mail to send). */
export async function openMailbox() {
  const mails = []
  const waiting = []
  const keep = (mail) => {
    mails.push(mail)
    for (const look of [...waiting]) look()
  }
  const server = createServer((socket) => {
    let [held, to, isData] = ['', [], false]
    const say = (line) => socket.write(`${line}\r\n`)
    const answer = (line) => {
      const verb = line.slice(0, 4).toUpperCase()
      if (verb === 'RCPT') to.push(line.match(/<(.*)>/)[1])
      if (verb === 'DATA') isData = true
      if (verb === 'QUIT') return socket.end('221 bye\r\n')
      say(isData ? '354 go on' : '250 fine')
    }
    const step = () => {
      const end = isData ? '\r\n.\r\n' : '\r\n'
      const at = held.indexOf(end)
      if (at < 0) return false
      const taken = held.slice(0, at)
      held = held.slice(at + end.length)
      if (!isData) return answer(taken), true
      isData = false
      keep({ to, text: textOf(taken.replaceAll('\r\n..', '\r\n.')) })
      to = []
      say('250 kept')
      return true
    }
    socket.on('error', () => {}).on('data', (part) => {
      held += part.toString('latin1')
      while (step());
    })
    say('220 mailbox')
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    config: JSON.stringify({ MailType: 'SMTP', Host: '127.0.0.1', Port: server.address().port, EnableSSL: false, Timeout: 5000 }),
    /** Waits for the mail to somebody that comes after those who were waited for before; its text. */
    next: (address) => new Promise((found, fail) => {
      const late = setTimeout(() => fail(new Error(`no mail comes to ${address}`)), PATIENCE)
      const look = () => {
        const at = mails.findIndex((mail) => mail.to.includes(address))
        if (at < 0) return
        clearTimeout(late)
        waiting.splice(waiting.indexOf(look), 1)
        found(mails.splice(at, 1)[0].text)
      }
      waiting.push(look)
      look()
    }),
    close: () => server.close(),
  }
}

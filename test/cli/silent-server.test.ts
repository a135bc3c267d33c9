// @module-tag slow

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../support/deferred.ts'
import { ended, program } from './program.ts'

const headwater = program()

/** Collects garbage before the command receives a signal. */
const COLLECT_GARBAGE = `
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => collect())
`

/** The configuration of a stream, and its tail. */
const BODY = JSON.stringify({ retention_policy: { infinite: {} }, tail: { seq_num: 0, timestamp: 0 } })

/** Starts a server that responds to requests of one method, and to no others. Resolves to its URL. */
async function silentServer(respondsTo: string, onSilence: () => void): Promise<string> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === respondsTo) response.setHeader('content-type', 'application/json').end(BODY)
    else onSilence()
  }
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const isWindows = process.platform === 'win32'

describe.skipIf(isWindows /* it has no signals */)('a server that does not respond', () => {
  it.each([
    ['append app/s text', 'SIGINT', 'GET', 130],
    ['append app/s text', 'SIGTERM', 'GET', 143],
    ['export', 'SIGINT', 'POST', 130],
    ['export', 'SIGTERM', 'POST', 143],
  ] as const)('does not keep `%s` alive after %s', async (command, signal, respondsTo, code) => {
    const onSilence = deferred<void>()
    const url = await silentServer(respondsTo, onSilence.resolve)
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(COLLECT_GARBAGE)}`
    const child = headwater.start([...command.split(' '), '--url', url], { NODE_OPTIONS })
    onTestFinished(() => void child.kill('SIGKILL'))
    const output = ended(child)
    await onSilence.promise
    child.kill(signal)
    expect(await output).toMatchObject({ code })
  })
})

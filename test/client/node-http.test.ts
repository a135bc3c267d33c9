import { createServer, type RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { listening } from '../support/listening.ts'
import { reservedPort } from '../support/port.ts'
import { failureOf } from './network.ts'

const TAIL = JSON.stringify({ tail: { seq_num: 7, timestamp: 8 } })
const JSON_TYPE = { 'content-type': 'application/json' }

/** A client of a server of HTTP/1.1 that responds as the listener does. Counts connections. */
async function connected(listener: RequestListener) {
  const server = createServer(listener)
  let connections = 0
  server.on('connection', () => connections++)
  const hw = await connect({ url: await listening(server), retries: 0 })
  onTestFinished(() => hw.close())
  return { hw, stream: hw.basin('basin').stream('stream'), connections: () => connections }
}

describe('single requests in Node', () => {
  it('accept compressed responses', async () => {
    const { stream } = await connected((_, response) => {
      response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(gzipSync(TAIL))
    })
    expect(await stream.checkTail()).toEqual({ seqNum: 7, timestamp: 8 })
  })

  it.each<[string, RequestListener]>([
    ['cut short', (_, response) => response.writeHead(200, JSON_TYPE).write(TAIL, () => response.destroy())],
    ['never begun', (_, response) => response.destroy()],
    [
      'of damaged data',
      (_, response) => {
        response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end('not gzip')
      },
    ],
  ])('fail with `unavailable` for a response %s', async (_, listener) => {
    const { stream } = await connected(listener)
    expect(await failureOf(stream.checkTail())).toMatchObject({ code: 'unavailable', mayHaveEffects: false })
    expect(await failureOf(stream.append('a'))).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
  })

  it('have no effects where nothing listens', async () => {
    const hw = await connect({ url: `http://127.0.0.1:${await reservedPort()}`, retries: 0 })
    const appending = failureOf(hw.basin('basin').stream('stream').append('a'))
    expect(await appending).toMatchObject({ code: 'unavailable', mayHaveEffects: false })
    await hw.close()
  })

  it('end with the reason of their signal', async () => {
    const control = new AbortController()
    const { stream } = await connected(() => control.abort('enough'))
    expect(await failureOf(stream.checkTail({ signal: control.signal }))).toBe('enough')
  })

  it('use a `fetch` that the program has replaced', async () => {
    const { stream, connections } = await connected(() => {})
    onTestFinished(() => {
      vi.unstubAllGlobals()
    })
    vi.stubGlobal('fetch', async () => new Response(TAIL, { headers: JSON_TYPE }))
    expect((await stream.checkTail()).seqNum).toBe(7)
    expect(connections()).toBe(0)
  })
})

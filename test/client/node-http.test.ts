import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { reservedPort } from '../support/port.ts'
import { failureOf } from './network.ts'

const TAIL = JSON.stringify({ tail: { seq_num: 7, timestamp: 8 } })
const JSON_TYPE = { 'content-type': 'application/json' }

/** A client of a server of HTTP/1.1 that responds as the listener does. Counts connections. */
async function connected(listener: RequestListener, options: Partial<ConnectOptions> = {}) {
  const server = createServer(listener)
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const hw = await connect({ url, retries: 0, ...options })
  onTestFinished(async () => {
    await hw.close()
    server.closeAllConnections()
    server.close()
  })
  return { hw, stream: hw.basin('basin').stream('stream'), connections: () => connections }
}

describe('single requests in Node', () => {
  it('use one connection one after another', async () => {
    const { stream, connections } = await connected((_, response) => {
      response.writeHead(200, JSON_TYPE).end(TAIL)
    })
    for (let i = 0; i < 5; i++) expect(await stream.checkTail()).toEqual({ seqNum: 7, timestamp: 8 })
    expect(connections()).toBe(1)
  })

  it('keep the connection after a response that reports an error', async () => {
    let requests = 0
    const { stream, connections } = await connected((_, response) => {
      const body = JSON.stringify({ code: 'stream_not_found', message: 'stream not found' })
      if (++requests === 1) response.writeHead(404, JSON_TYPE).end(body)
      else response.writeHead(200, JSON_TYPE).end(TAIL)
    })
    expect(await failureOf(stream.checkTail())).toMatchObject({ code: 'stream_not_found' })
    await stream.checkTail()
    expect(connections()).toBe(1)
  })

  it('accept compressed responses where requests are compressed', async () => {
    const accepted: unknown[] = []
    const listener: RequestListener = ({ headers }, response) => {
      accepted.push(headers['accept-encoding'])
      if (headers['accept-encoding'] !== 'gzip') response.writeHead(200, JSON_TYPE).end(TAIL)
      else response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(gzipSync(TAIL))
    }
    for (const compression of [true, false]) {
      const { stream } = await connected(listener, { compression })
      expect(await stream.checkTail()).toEqual({ seqNum: 7, timestamp: 8 })
    }
    expect(accepted).toEqual(['gzip', undefined])
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

  it('use the dispatcher that the program has set for `fetch`, such as one for a proxy', async () => {
    const { stream, connections } = await connected(() => {})
    const symbol = Symbol.for('undici.globalDispatcher.1')
    // Node sets its own dispatcher with the first request.
    await fetch('data:,')
    const globals = globalThis as Record<symbol, unknown>
    const original = globals[symbol]
    onTestFinished(() => {
      globals[symbol] = original
    })
    class ProxyDispatcher {
      calls = 0
      dispatch(): never {
        this.calls++
        throw new Error('no proxy')
      }
    }
    const dispatcher = new ProxyDispatcher()
    globals[symbol] = dispatcher
    expect(await failureOf(stream.checkTail())).toMatchObject({ code: 'unavailable' })
    expect([dispatcher.calls, connections()]).toEqual([1, 0])
  })
})

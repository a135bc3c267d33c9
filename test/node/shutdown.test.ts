import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Reply } from '../../adapters/http/reply.ts'
import { serve, serveHandler } from '../../adapters/node/serve.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { Raw, request } from './raw.ts'
import { http2Client, http2Fetch, http2Response, ok, startServer, trackedHandler, until } from './support.ts'

/** A handler that responds when the test releases it. */
function held() {
  const waiting: (() => void)[] = []
  const handler = async (): Promise<Reply> => {
    await new Promise<void>((resolve) => waiting.push(resolve))
    return ok('done')
  }
  const release = () => {
    for (const resolve of waiting) resolve()
  }
  return { handler, release, waiting }
}

const GET = request('GET', '/')

describe('close', () => {
  it('lets requests in flight finish on both protocols, and rejects new ones', async () => {
    const gate = held()
    const { server } = await startServer(gate.handler)
    const first = new Raw(server.port).send(GET)
    const session = await http2Client(server.url)
    const second = http2Fetch(session, { ':path': '/' })
    await until(() => gate.waiting.length === 2)
    const goaway = once(session, 'goaway')
    const closed = server.close()
    await goaway
    await expect(fetch(server.url)).rejects.toThrow()
    gate.release()
    await first.closed
    expect(first.received).toMatch(/HTTP\/1\.1 200 OK[\s\S]*connection: close[\s\S]*done$/i)
    expect((await second).body).toBe('done')
    await closed
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  })

  it('waits for requests in flight without a limit if `graceMs` is infinite', async () => {
    const gate = held()
    const { server } = await startServer(gate.handler)
    const client = new Raw(server.port).send(GET)
    await until(() => gate.waiting.length === 1)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const closed = server.close({ graceMs: Number.POSITIVE_INFINITY })
    await vi.advanceTimersByTimeAsync(3_600_000)
    vi.useRealTimers()
    gate.release()
    await Promise.all([closed, client.closed])
    expect(client.received).toMatch(/done$/)
  })

  it('stops waiting when its signal aborts, and continues to close', async () => {
    const gate = held()
    const { server } = await startServer(gate.handler)
    const client = new Raw(server.port).send(GET)
    await until(() => gate.waiting.length === 1)
    await expect(server.close({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    await expect(fetch(server.url)).rejects.toThrow()
    gate.release()
    await Promise.all([server.close(), client.closed])
    expect(client.received).toMatch(/done$/)
  })

  it('drops idle, silent and incomplete connections at once', async () => {
    const { server } = await startServer(() => ok())
    const idle = new Raw(server.port).send(GET)
    await idle.until('ok')
    const silent = new Raw(server.port)
    const hesitant = new Raw(server.port).send('PRI * HT')
    const session = await http2Client(server.url)
    expect((await http2Fetch(session, { ':path': '/' })).body).toBe('ok')
    await until(() => server.counts().connections === 4)
    // Longer than the test may take, so waiting for any of them fails it.
    await server.close({ graceMs: 600_000 })
    await Promise.all([idle.closed, silent.closed, hesitant.closed])
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  })

  it('closes a connection once the response that it had begun is complete', async () => {
    let end: (() => void) | undefined
    const { server } = await startServer(() =>
      ok(
        (async function* () {
          yield Buffer.from('begun')
          await new Promise<void>((resolve) => {
            end = resolve
          })
        })(),
      ),
    )
    const client = new Raw(server.port).send(GET)
    await client.until('begun')
    await until(() => end !== undefined)
    const closed = server.close({ graceMs: 600_000 })
    end!()
    await Promise.all([closed, client.closed])
    expect(client.received).toMatch(/0\r\n\r\n$/)
  })

  it('closes a connection once the upload that it had answered early is complete', async () => {
    const { server } = await startServer(() => ok('early'))
    const client = new Raw(server.port).send(request('POST', '/', { 'content-length': '10' }, '12345'))
    await client.until('early')
    await until(() => server.counts().requests === 0)
    const closed = server.close({ graceMs: 600_000 })
    client.send('67890')
    await Promise.all([closed, client.closed])
    // Shorter than the 65 s after which Node closes an idle connection.
  }, 30_000)

  it('drops requests that do not finish in time, and releases them', async () => {
    const { handler, fates } = trackedHandler()
    const { server } = await startServer(handler)
    const client = new Raw(server.port).send(request('GET', '/live'))
    await client.until('first')
    const session = await http2Client(server.url)
    const pending = session.request({ ':path': '/pending' })
    const live = session.request({ ':path': '/live' })
    for (const stream of [pending, live]) stream.on('error', () => {})
    await once(live, 'data')
    await server.close({ graceMs: 1 })
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
    await until(() => fates.length === 3 && fates.every((fate) => fate.aborted))
    expect(fates.filter((fate) => fate.cancelled)).toHaveLength(2)
    await client.closed
    expect(client.received).not.toContain('0\r\n\r\n')
  })

  it('resolves at the same time for every caller', async () => {
    const { server } = await startServer(() => ok())
    const closed = server.close()
    expect(server.close()).toBe(closed)
    await closed
    await expect(fetch(server.url)).rejects.toThrow()
  })

  it('responds on an HTTP/2 stream that was open when GOAWAY was sent', async () => {
    const { server } = await startServer((exchange) => ok(exchange.chunks()))
    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    const response = http2Response(stream)
    await until(() => server.counts().requests === 1)
    const closed = server.close()
    stream.end('late')
    expect((await response).body).toBe('late')
    await closed
  })
})

describe('serve', () => {
  it('returns the address on which it listens', async () => {
    const { server } = await startServer(() => ok(), { host: '::1' })
    expect(server.url).toBe(`http://[::1]:${server.port}`)
    expect(server.address).toMatchObject({ address: '::1', port: server.port, family: 'IPv6' })
    expect(await (await fetch(server.url)).text()).toBe('ok')
  })

  it('rejects when the port is taken', async () => {
    const { server } = await startServer(() => ok())
    await expect(serveHandler(() => {}, { port: server.port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
  })
})

it('closes at the end of the block of `await using`', async () => {
  const hw = await open({ storage: memory() })
  let url = ''
  {
    await using server = await serve(hw, { auth: 'none' })
    url = server.url
    expect((await fetch(`${url}/v1/basins`)).status).toBe(200)
  }
  await expect(fetch(`${url}/v1/basins`)).rejects.toThrow()
  await hw.close()
})

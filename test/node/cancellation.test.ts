import { once } from 'node:events'
import { constants, type Http2ServerRequest } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { frame, OPENING, requestFrame } from './http2-frames.ts'
import { BASIN, Raw, request, server } from './raw.ts'
import { type Handle, http2Client, ok, startServer, textOf, trackedHandler, until } from './support.ts'

/** A request that a client sends, and how it leaves. */
interface Sent {
  /** Resolves when the response has begun. */
  begun(): Promise<unknown>
  leave(): void
}

const onHttp1 =
  (how: 'destroy' | 'resetAndDestroy') =>
  async (url: string, path: string): Promise<Sent> => {
    const raw = new Raw(Number(new URL(url).port)).send(request('GET', path))
    return { begun: () => raw.until('first'), leave: () => raw.socket[how]() }
  }
const onHttp2 =
  (how: 'reset' | 'disconnect') =>
  async (url: string, path: string): Promise<Sent> => {
    const session = await http2Client(url)
    const stream = session.request({ ':path': path })
    stream.on('error', () => {})
    const leave = { reset: () => stream.close(constants.NGHTTP2_CANCEL), disconnect: () => session.destroy() }
    return { begun: () => once(stream, 'data'), leave: leave[how] }
  }
const CLIENTS = [
  ['over HTTP/1.1, by the end of its connection', onHttp1('destroy')],
  ['over HTTP/1.1, by a reset of its connection', onHttp1('resetAndDestroy')],
  ['over HTTP/2, by a reset of its stream', onHttp2('reset')],
  ['over HTTP/2, by the end of its connection', onHttp2('disconnect')],
] as const

describe.each(CLIENTS)('a client that leaves %s', (title, send) => {
  /**
   * A server, with the errors that it reports and those of its responses, which frameworks such as Koa log.
   */
  async function start(handler: Handle) {
    const logged: unknown[] = []
    const { server, errors } = await startServer((exchange) => {
      const { stream } = exchange.source as Http2ServerRequest
      stream?.on('error', (error) => logged.push(error))
      return handler(exchange)
    })
    return { server, errors: () => [...errors, ...logged] }
  }

  it('aborts the request before the response', async () => {
    const { handler, fates } = trackedHandler()
    const { server, errors } = await start(handler)
    const client = await send(server.url, '/pending')
    await until(() => fates.length === 1)
    client.leave()
    await until(() => fates[0]!.aborted && server.counts().requests === 0)
    expect(errors()).toEqual([])
  })

  it('aborts the request and cancels the response, mid-stream', async () => {
    const { handler, fates } = trackedHandler()
    const { server, errors } = await start(handler)
    const client = await send(server.url, '/live')
    await client.begun()
    client.leave()
    await until(() => fates[0]!.cancelled && fates[0]!.aborted)
    const connections = title.includes('its stream') ? 1 : 0
    await until(() => server.counts().connections === connections && server.counts().requests === 0)
    expect(errors()).toEqual([])
  })

  it('cancels a response body that is returned afterwards', async () => {
    const { handler, fates } = trackedHandler()
    let answer: (() => void) | undefined
    const { server } = await start(async (exchange) => {
      const aborted = new Promise((resolve) => exchange.signal.addEventListener('abort', resolve))
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      await aborted
      return handler(exchange)
    })
    const client = await send(server.url, '/live')
    await until(() => answer !== undefined)
    client.leave()
    answer!()
    await until(() => fates.length === 1 && fates[0]!.cancelled && server.counts().requests === 0)
    // Only an HTTP/2 client is known to have left permanently.
    if (title.includes('HTTP/2')) expect(fates[0]!.pulled).toBe(0)
  })
})

describe('a client that leaves during an upload', () => {
  it('aborts a request body that is being read', async () => {
    const failures: unknown[] = []
    const { server } = await startServer(async (exchange) => {
      await textOf(exchange).catch((error) => failures.push(error))
      return ok('too late')
    })
    const client = new Raw(server.port).send(request('POST', '/', { 'content-length': '100' }, 'part'))
    await until(() => server.counts().requests === 1)
    client.socket.resetAndDestroy()
    await until(() => failures.length === 1)
    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write('part')
    await until(() => server.counts().requests === 1)
    // Not `stream.close`, with which Node ends the stream properly before it resets it.
    session.destroy()
    await until(() => failures.length === 2)
  })

  it.each([
    ['is being read', false],
    ['is read on only after that', true],
  ])('does not complete it by resetting its HTTP/2 stream (%s)', async (_, isLate) => {
    const outcomes: string[] = []
    const { server } = await startServer(async (exchange) => {
      const chunks = exchange.chunks()
      await chunks.next()
      const aborted = new Promise((resolve) => exchange.signal.addEventListener('abort', resolve))
      if (isLate) await aborted
      const outcome = await chunks.next().then(
        ({ done }) => `done: ${done}`,
        () => 'failed',
      )
      outcomes.push(outcome)
      return ok('too late')
    })
    const upload = [OPENING, requestFrame(1, 'POST', '/'), frame('data', 0, 1, Buffer.from('part'))]
    const client = new Raw(server.port).send(Buffer.concat(upload))
    await until(() => server.counts().requests === 1)
    // Not by Node's client, which ends its stream properly before it resets it.
    client.send(frame('rstStream', 0, 1, [0, 0, 0, constants.NGHTTP2_CANCEL]))
    await until(() => outcomes.length === 1)
    expect(outcomes).toEqual(['failed'])
  })
})

it('a response that is received completely does not abort the signal of its request', async () => {
  const signals: AbortSignal[] = []
  const { server } = await startServer(({ signal }) => {
    signals.push(signal)
    return ok()
  })
  const client = new Raw(server.port).send(request('GET', '/'))
  await client.until('ok')
  client.socket.destroy()
  const session = await http2Client(server.url)
  const stream = session.request({ ':path': '/' })
  stream.resume()
  await once(stream, 'close')
  session.destroy()
  await until(() => server.counts().connections === 0)
  expect(signals.map((signal) => signal.aborted)).toEqual([false, false])
})

it.each([
  ['NO_ERROR', constants.NGHTTP2_NO_ERROR],
  ['CANCEL', constants.NGHTTP2_CANCEL],
])('an append that is reset at once with %s is not reported', async (_, code) => {
  const { node, errors, url } = await server()
  const headers = { 'svc-basin': BASIN, 'content-type': 'application/json' }
  for (let count = 0; count < 20; count++) {
    const raw = new Raw(node.port).send(
      Buffer.concat([
        OPENING,
        requestFrame(1, 'POST', '/v1/streams/s/records', headers),
        frame('rstStream', 0, 1, [0, 0, 0, code]),
      ]),
    )
    await until(() => raw.received !== '')
    raw.socket.destroy()
  }
  await until(() => node.counts().connections === 0)
  expect((await fetch(`${url}/health`)).status).toBe(200)
  expect(errors).toEqual([])
})

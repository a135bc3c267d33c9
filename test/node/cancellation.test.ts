import { once } from 'node:events'
import { constants, type Http2ServerRequest } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { http2Client, ok, RawClient, startServer, textOf, trackedHandler, until } from './support.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

describe('a client that disconnects', () => {
  it.each(['destroy', 'resetAndDestroy'] as const)(
    'aborts the request over HTTP/1.1, mid-stream (%s)',
    async (leave) => {
      const { handler, fates } = trackedHandler()
      const { server, errors } = await startServer(handler)
      const client = new RawClient(server.port)
      client.socket.write(get('/live'))
      await client.until('first')
      client.socket[leave]()
      await until(() => fates[0]!.cancelled && fates[0]!.aborted)
      await until(() => server.counts().connections === 0 && server.counts().requests === 0)
      expect(errors).toEqual([])
    },
  )

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'aborts the request over HTTP/1.1, before the response (%s)',
    async (leave) => {
      const { handler, fates } = trackedHandler()
      const { server, errors } = await startServer(handler)
      const client = new RawClient(server.port)
      client.socket.write(get('/pending'))
      await until(() => fates.length === 1)
      client.socket[leave]()
      await until(() => fates[0]!.aborted)
      await until(() => server.counts().connections === 0 && server.counts().requests === 0)
      expect(errors).toEqual([])
    },
  )

  it.each(['a reset', 'the end of its connection'])(
    'aborts the request over HTTP/2, mid-stream, by %s',
    async (how) => {
      const { handler, fates } = trackedHandler()
      // Frameworks such as Koa log the errors of a response.
      const logged: unknown[] = []
      const { server, errors } = await startServer((exchange) => {
        const { stream } = exchange.source as Http2ServerRequest
        stream.on('error', (error) => logged.push(error))
        return handler(exchange)
      })
      const session = await http2Client(server.url)
      const stream = session.request({ ':path': '/live' })
      stream.on('error', () => {})
      await once(stream, 'data')
      if (how === 'a reset') stream.close(constants.NGHTTP2_CANCEL)
      else session.destroy()
      await until(() => fates[0]!.cancelled && fates[0]!.aborted)
      await until(() => server.counts().requests === 0)
      expect(server.counts().connections).toBeLessThanOrEqual(1)
      expect([...errors, ...logged]).toEqual([])
    },
  )

  it.each(['a reset', 'the end of its connection'])(
    'aborts the request over HTTP/2, before the response, by %s',
    async (how) => {
      const { handler, fates } = trackedHandler()
      const { server, errors } = await startServer(handler)
      const session = await http2Client(server.url)
      const stream = session.request({ ':path': '/pending' })
      stream.on('error', () => {})
      await until(() => fates.length === 1)
      if (how === 'a reset') stream.close(constants.NGHTTP2_CANCEL)
      else session.destroy()
      await until(() => fates[0]!.aborted)
      await until(() => server.counts().requests === 0)
      expect(errors).toEqual([])
    },
  )

  it.each(['HTTP/1.1', 'HTTP/2'])(
    'over %s cancels a response body that is returned after it left',
    async (protocol) => {
      const { handler, fates } = trackedHandler()
      let answer: (() => void) | undefined
      const { server } = await startServer(async (exchange) => {
        const aborted = new Promise((resolve) => exchange.signal.addEventListener('abort', resolve))
        await new Promise<void>((resolve) => {
          answer = resolve
        })
        await aborted
        return handler(exchange)
      })
      if (protocol === 'HTTP/2') {
        const session = await http2Client(server.url)
        const stream = session.request({ ':path': '/live' })
        stream.on('error', () => {})
        await until(() => answer !== undefined)
        stream.close(constants.NGHTTP2_CANCEL)
      } else {
        const client = new RawClient(server.port)
        client.socket.write(get('/live'))
        await until(() => answer !== undefined)
        client.socket.destroy()
      }
      answer!()
      await until(() => fates.length === 1 && fates[0]!.cancelled)
      // Only an HTTP/2 client is known to have left permanently.
      if (protocol === 'HTTP/2') expect(fates[0]!.pulled).toBe(0)
      await until(() => server.counts().requests === 0)
    },
  )

  it('aborts a request body that is being read', async () => {
    const failures: unknown[] = []
    const { server } = await startServer(async (exchange) => {
      try {
        await textOf(exchange)
      } catch (error) {
        failures.push(error)
      }
      return ok('too late')
    })
    const client = new RawClient(server.port)
    client.socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\npart')
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
  ])('does not complete an upload by resetting its HTTP/2 stream (%s)', async (_, isLate) => {
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
    const frame = (type: number, flags: number, stream: number, payload: Buffer) =>
      Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]), payload])
    // POST, http and / are entries 3, 6 and 4 of the static table, :authority is a literal (RFC 7541).
    const headers = Buffer.concat([Buffer.from([0x83, 0x86, 0x84, 0x41, 9]), Buffer.from('localhost')])
    const client = new RawClient(server.port)
    client.socket.write(
      Buffer.concat([
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
        frame(4, 0, 0, Buffer.alloc(0)),
        frame(1, 4, 1, headers),
        frame(0, 0, 1, Buffer.from('part')),
      ]),
    )
    await until(() => server.counts().requests === 1)
    // Not by Node's client, which ends its stream properly before it resets it.
    client.socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL])))
    await until(() => outcomes.length === 1)
    expect(outcomes).toEqual(['failed'])
  })
})

describe('a response that is received completely', () => {
  it('does not abort the signal of its request', async () => {
    const signals: AbortSignal[] = []
    const { server } = await startServer(({ signal }) => {
      signals.push(signal)
      return ok()
    })
    const client = new RawClient(server.port)
    client.socket.write(get('/'))
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
})

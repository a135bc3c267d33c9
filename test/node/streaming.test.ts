import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest } from 'node:http2'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RequestExchange } from '../../adapters/http/exchange.ts'
import { nodeHandler } from '../../adapters/node/handler.ts'
import { serveHandler } from '../../adapters/node/serve.ts'
import { Raw, request } from './raw.ts'
import {
  bytesOf,
  collect,
  http2Client,
  http2Fetch,
  http2Response,
  laterChunks,
  ok,
  startServer,
  trackedHandler,
  until,
} from './support.ts'

const MIB = 1024 * 1024

function patterned(bytes: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: bytes }, (_, i) => (i * 7 + (i >> 8)) & 0xff)
}

/** The chunks of a body in the chunked transfer coding, by size, and what they contain. */
function unchunked(coded: Buffer): { sizes: string; body: Buffer } {
  const sizes: string[] = []
  const parts: Buffer[] = []
  for (let offset = 0; ; ) {
    const line = coded.indexOf('\r\n', offset)
    const size = coded.toString('latin1', offset, line)
    const length = Number.parseInt(size, 16)
    if (length === 0) return { sizes: `${sizes}`, body: Buffer.concat(parts) }
    sizes.push(size)
    parts.push(coded.subarray(line + 2, line + 2 + length))
    offset = line + 2 + length + 2
  }
}

describe('full duplex', () => {
  it('sends headers over HTTP/2 before a body arrives, then echoes it chunk by chunk', async () => {
    const { server } = await startServer((exchange) => ok(exchange.chunks()))
    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    const [headers] = await once(stream, 'response')
    expect(headers[':status']).toBe(200)
    for (const message of ['one', 'two', 'three']) {
      stream.write(message)
      const [echo] = await once(stream, 'data')
      expect(echo.toString()).toBe(message)
    }
    stream.end()
    await once(stream, 'close')
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR)
  })

  it('echoes a chunked upload over HTTP/1.1 chunk by chunk', async () => {
    const { server } = await startServer((exchange) => ok(exchange.chunks()))
    const client = new Raw(server.port).send(request('POST', '/', { 'transfer-encoding': 'chunked' }))
    await client.until('\r\n\r\n')
    client.send('3\r\none\r\n')
    await client.until('3\r\none\r\n')
    client.send('3\r\ntwo\r\n0\r\n\r\n')
    expect(await client.until('0\r\n\r\n')).toContain('3\r\ntwo\r\n')
  })
})

describe('bodies', () => {
  it('transfers several MiB in both directions over both protocols', { tags: ['slow'] }, async () => {
    const { server } = await startServer(async (exchange) => ok(await bytesOf(exchange)))
    const sent = patterned(3 * MIB + 17)
    const response = await fetch(server.url, { method: 'POST', body: sent })
    expect(response.headers.get('content-length')).toBe(String(sent.length))
    expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), sent)).toBe(0)

    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.end(sent)
    await once(stream, 'response')
    expect(Buffer.compare(Buffer.concat(await collect(stream)), sent)).toBe(0)
  })

  const SIZES = [1, 0, 10, 16_384, 0, 16_385, 9]
  const chunksOf = (sizes: readonly number[]) => laterChunks(sizes.map((size) => patterned(size)))
  const expected = Buffer.concat(SIZES.map((size) => patterned(size)))

  it.each([
    ['over HTTP/1.1', 'HTTP/1.1', `${SIZES.filter((size) => size > 0).map((size) => size.toString(16))}`],
    ['over HTTP/1.0', 'HTTP/1.0', undefined],
  ])('streams chunks of any size %s, empty ones included', async (_title, version, sizes) => {
    const { server } = await startServer(() => ok(chunksOf(SIZES)))
    const socket = connect(server.port)
    socket.write(`GET / ${version}\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    const received = Buffer.concat(await collect(socket))
    const body = received.subarray(received.indexOf('\r\n\r\n') + 4)
    if (sizes === undefined) expect(body.equals(expected)).toBe(true)
    else expect(unchunked(body)).toEqual({ sizes, body: expected })
  })

  it.each([
    ['chunks', (chunk: Uint8Array) => chunk],
    ['chunks in parts', (chunk: Uint8Array) => [chunk.subarray(0, 1), chunk.subarray(1)]],
  ])('streams %s through a `write` that a framework has replaced', async (_, partsOf) => {
    const written: number[] = []
    async function* replaced() {
      for await (const chunk of chunksOf(SIZES)) yield partsOf(chunk)
    }
    const handler = nodeHandler(async () => ok(replaced()), {
      serves: () => true,
      openShare: () => ({ close() {} }),
      lingerMs: 0,
      onError: () => {},
    })
    const server = await serveHandler((req, res) => {
      const response = res as ServerResponse
      const { write } = response
      response.write = (chunk: Uint8Array) => {
        written.push(chunk.length)
        return write.call(response, chunk, 'latin1')
      }
      handler(req, res)
    })
    onTestFinished(() => server.close({ graceMs: 0 }))
    const response = await fetch(server.url)
    expect(Buffer.from(await response.arrayBuffer()).equals(expected)).toBe(true)
    expect(written).toEqual(SIZES)
  })

  it.each(['over HTTP/1.1', 'over HTTP/2'])('streams chunks in parts %s', async (title) => {
    const chunk = [patterned(30_000), patterned(25_000), patterned(30_000)]
    async function* chunks() {
      for (let i = 0; i < 4; i++) yield chunk
    }
    const { server } = await startServer(() => ok(chunks()))
    const body = async () => {
      if (title === 'over HTTP/1.1') return Buffer.from(await (await fetch(server.url)).arrayBuffer())
      return Buffer.concat(await collect((await http2Client(server.url)).request({ ':path': '/' })))
    }
    expect((await body()).equals(Buffer.concat(Array(4).fill(Buffer.concat(chunk))))).toBe(true)
  })

  it('streams the response of a pipelined request', async () => {
    const { server } = await startServer(({ path }) => ok(laterChunks([path, '!'])))
    const client = new Raw(server.port)
    for (const path of ['/a', '/b', '/c']) client.send(request('GET', path))
    const received = await client.until('/c\r\n1\r\n!\r\n0\r\n\r\n')
    expect(received.match(/\/[abc]\r\n1\r\n!\r\n0/g)).toHaveLength(3)
  })

  it.each([
    ['does not touch', () => {}],
    [
      'discards after its beginning',
      async (exchange: RequestExchange) => {
        const chunks = exchange.chunks()
        await chunks.next()
        await chunks.return!()
      },
    ],
  ])('keeps the connection after an upload that the handler %s', async (_, refuse) => {
    const { server } = await startServer(
      async (exchange) => {
        await refuse(exchange)
        return { status: 401, body: 'no' }
      },
      { lingerMs: 600_000 },
    )
    const client = new Raw(server.port)
    const body = 'x'.repeat(MIB)
    for (let i = 1; i <= 2; i++) {
      client.send(request('POST', '/', {}, body))
      await until(() => client.received.split('HTTP/1.1 401').length === i + 1)
    }
    expect(server.counts().connections).toBe(1)
  })

  it('responds only after the end of an upload that the handler discards', { tags: ['slow'] }, async () => {
    let answer: (() => void) | undefined
    const { server } = await startServer(async (exchange) => {
      const chunks = exchange.chunks()
      await chunks.next()
      await chunks.return!()
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      return { status: 401, body: 'no' }
    })
    const client = new Raw(server.port)
    const body = Buffer.alloc(32 * MIB)
    client.send(request('POST', '/', { 'content-length': `${body.length}` }))
    await new Promise((resolve) => client.socket.write(body, resolve))
    answer!()
    await client.until('HTTP/1.1 401')
  })

  it('cuts off an upload that continues after its response is complete', async () => {
    const refuse = () => ({ status: 401, body: 'no' })
    const { server } = await startServer(refuse, { lingerMs: 20 })
    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.write('part of it')
    const { headers, body } = await http2Response(stream)
    expect(headers[':status']).toBe(401)
    expect(body).toBe('no')
    const client = new Raw(server.port).send(request('POST', '/', { 'content-length': '100' }, 'part of it'))
    await client.closed
    expect(client.received).toMatch(/401 Unauthorized[\s\S]*no$/)
    await until(() => server.counts().requests === 0)
  })

  it('waits for the end of an upload that follows soon after its response', async () => {
    const { server } = await startServer(() => ({ status: 401, body: 'no' }), { lingerMs: 600_000 })
    const session = await http2Client(server.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.write('part of it')
    await once(stream, 'response')
    stream.end('the rest')
    expect(Buffer.concat(await collect(stream)).toString()).toBe('no')
    await until(() => server.counts().requests === 0)
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR)
  })

  it.each([
    ['a response', '/'],
    ['a session', '/live'],
  ])('discards an upload while its client does not read %s', async (_, path) => {
    const { handler } = trackedHandler()
    const { server } = await startServer((exchange) => (path === '/live' ? handler(exchange) : ok()))
    const session = await http2Client(server.url, { settings: { initialWindowSize: 0 } })
    // Acknowledged by the server.
    await once(session, 'localSettings')
    const stream = session.request({ ':method': 'POST', ':path': path })
    await once(stream, 'response')
    // More than the window of a stream.
    await new Promise((resolve) => stream.write(Buffer.alloc(4 * MIB), resolve))
    expect(server.counts().requests).toBe(1)
  })

  it('sends neither a body nor its length for HEAD and 204', async () => {
    const { server } = await startServer(({ method }) => ({ status: method === 'HEAD' ? 200 : 204 }))
    const head = await fetch(server.url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, null])
    const empty = await fetch(server.url)
    expect([empty.status, empty.headers.get('content-length')]).toEqual([204, null])
    const session = await http2Client(server.url)
    const response = await http2Fetch(session, { ':method': 'HEAD', ':path': '/' })
    expect([response.body, response.headers['content-length']]).toEqual(['', undefined])
  })
})

describe('back-pressure', () => {
  // What may lie in buffers of ours, of Node's and of the kernel's together. An endless body passes it at
  // once if nothing holds it.
  const BUFFERS_BYTES = 16 * MIB

  /** Sends an endless response to a client that does not read it, until the server waits for the client. */
  async function expectHeld(fate: { readonly pulled: number }, waits: () => boolean): Promise<number> {
    await until(() => fate.pulled > BUFFERS_BYTES || (fate.pulled > 0 && waits()))
    const held = fate.pulled
    expect(held).toBeLessThan(BUFFERS_BYTES)
    return held
  }

  it.each(['HTTP/1.1', 'HTTP/2'])(
    'stops reading a response that its %s client does not read',
    { tags: ['slow'] },
    async (protocol) => {
      const { handler, fates } = trackedHandler()
      let waits = () => false
      const { server } = await startServer((exchange) => {
        const source = exchange.source as IncomingMessage | Http2ServerRequest
        const response = 'stream' in source ? source.stream : source.socket
        waits = () => response.writableNeedDrain
        return handler(exchange)
      })
      const client =
        protocol === 'HTTP/2'
          ? (await http2Client(server.url)).request({ ':path': '/endless' })
          : new Raw(server.port).socket
      client.on('error', () => {})
      if (protocol === 'HTTP/1.1') client.write(request('GET', '/endless'))
      // What has arrived by then proves that the response had begun.
      await once(client, protocol === 'HTTP/2' ? 'response' : 'data')
      client.pause()
      const held = await expectHeld(fates[0]!, waits)
      client.resume()
      await until(() => fates[0]!.pulled > held + BUFFERS_BYTES)
      client.destroy()
      await until(() => fates[0]!.cancelled)
    },
  )

  async function readAll(read: () => Promise<number>): Promise<void> {
    while ((await read()) > 0);
  }

  it.each(['HTTP/1.1', 'HTTP/2'])(
    'does not accept an upload over %s faster than it is read',
    async (protocol) => {
      let read: (() => Promise<number>) | undefined
      let isFull = () => false
      const { server } = await startServer((exchange) => {
        const source = exchange.source as IncomingMessage | Http2ServerRequest
        const body = 'stream' in source ? source.stream : source
        isFull = () => body.readableLength >= body.readableHighWaterMark
        const chunks = exchange.chunks()
        read = async () => (await chunks.next()).value?.byteLength ?? 0
        return new Promise((_, reject) => {
          exchange.signal.addEventListener('abort', () => reject(exchange.signal.reason))
        })
      })
      const upload =
        protocol === 'HTTP/2'
          ? (await http2Client(server.url)).request({ ':method': 'POST', ':path': '/' })
          : new Raw(server.port).socket
      upload.on('error', () => {})
      if (protocol === 'HTTP/1.1') {
        upload.write(request('POST', '/', { 'content-length': `${1024 * MIB}` }))
      }
      let receivedBytes = 0
      const chunk = Buffer.alloc(256 * 1024)
      const more = () => {
        if (upload.destroyed) return
        upload.write(chunk, () => {
          receivedBytes += chunk.byteLength
          if (receivedBytes < 64 * MIB) more()
        })
      }
      more()
      await until(() => read !== undefined)
      expect(await read!()).toBeGreaterThan(0)
      // Taken by the kernel: the upload had begun. The server's buffer is full, and the client waits.
      const isHeld = () => receivedBytes > 0 && isFull() && upload.writableNeedDrain
      await until(() => receivedBytes > BUFFERS_BYTES || isHeld())
      expect(receivedBytes).toBeLessThan(BUFFERS_BYTES)
      upload.destroy()
      // A client that does not read does not notice it either.
      await expect(readAll(read!)).rejects.toThrow()
      await until(() => server.counts().requests === 0)
    },
  )
})

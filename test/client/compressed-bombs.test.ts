import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { platformCodec } from '../../src/wire/compression.ts'
import { encodeMessageFrame } from '../../src/wire/frame.ts'
import { listening } from '../support/listening.ts'
import { HOSTILE_ZSTD } from '../wire/zstd-data.ts'
import { connectTo, failureOf, whileTimePasses } from './network.ts'

/** Over the limits of a frame and of a body. */
const BOMB = gzipSync(new Uint8Array(17 * 1024 * 1024))
const HOSTILE = [
  // Earlier versions of Node have no zstd, and a client loads none.
  ...(platformCodec('zstd') === undefined ? [] : HOSTILE_ZSTD).map(
    ([name, data]) => ['zstd', name, data] as const,
  ),
  ['gzip', '17 MiB', BOMB],
  ['gzip', 'a truncated stream', BOMB.subarray(0, -1)],
] as const

const MALFORMED = 'unexpected response from the server: a compressed frame is invalid: '

describe.each(HOSTILE)('a server that sends hostile %s data: %s', (coding, _name, data) => {
  const frame = encodeMessageFrame(data, { compression: coding })

  it('ends a read session with a typed error, without another attempt', { tags: ['slow'] }, async () => {
    const { clock, stream, requests } = await connectTo(
      () => new Response(frame as Uint8Array<ArrayBuffer>, { headers: { 'content-type': 'svcs/proto' } }),
    )
    const error = await whileTimePasses(clock, failureOf(stream.follow({ seqNum: 0 }).toArray()))
    expect(error).toMatchObject({ code: 'other', message: expect.stringContaining(MALFORMED) })
    expect(requests).toHaveLength(1)
  })

  it('ends an append session with a typed error that leaves the batch undecided', async () => {
    const stream = await sessionsOf((session) => {
      session.respond({ ':status': 200, 'content-type': 'svcs/proto' })
      session.once('data', () => session.write(frame))
    })
    const session = await stream.appendSession()
    const ticket = await session.submit('a')
    expect(await failureOf(ticket.ack())).toMatchObject({
      code: 'other',
      message: expect.stringContaining(MALFORMED),
      mayHaveEffects: true,
    })
    await session.close().catch(() => {})
  })
})

it('cuts a compressed body off at 16 MiB that decompresses to more', { tags: ['slow'] }, async () => {
  const server = createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(BOMB)
  })
  const hw = await connect({ url: await listening(server), fetch: (request: Request) => fetch(request) })
  onTestFinished(() => hw.close())
  expect(await failureOf(hw.basin('basin').stream('stream').checkTail())).toMatchObject({
    code: 'other',
    message: expect.stringMatching(/too long/),
  })
})

/** The stream of a server that answers each session over HTTP/2 as the function does. */
async function sessionsOf(answer: (session: ServerHttp2Stream) => void) {
  const server = createHttp2Server()
  server.on('stream', (session) => {
    session.on('error', () => {})
    answer(session)
  })
  const hw = await connect({ url: await listening(server) })
  onTestFinished(() => hw.close())
  return hw.basin('basin').stream('stream')
}

import type { ClientHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { http2Client, startServer, until } from '../node/support.ts'
import { BASIN, Raw, server } from './raw.ts'

const R = '/v1/streams/s/records'
// One record `a`, a whole AppendInput by itself; more might follow.
const MESSAGE = Buffer.from([0x0a, 0x03, 0x1a, 0x01, 0x61])
const headers = { 'svc-basin': BASIN, 'content-type': 'application/protobuf' }

// A client of Node's that closes a stream with a code ends its upload before it resets it: what came is complete then. Resets of an upload
// that was not ended are sent frame by frame in test/node/streaming.test.ts.
const LEAVE: readonly [string, (session: ClientHttp2Session) => void][] = [
  ['the connection is lost', (session) => session.destroy()],
]

test.each(LEAVE)('HTTP/2: an append whose upload is cut off is not made: %s', async (_, leave) => {
  const { url, hw, node } = await server()
  for (let i = 0; i < 20; i++) {
    const session = await http2Client(url)
    const stream = session.request({ ':method': 'POST', ':path': R, ...headers }, { endStream: false })
    stream.on('error', () => {})
    stream.write(MESSAGE)
    await until(() => node.counts().requests === 1)
    leave(session)
    await until(() => node.counts().requests === 0)
  }
  expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
})

test.each(LEAVE)(
  'HTTP/2: a PUT whose body never came does not set the configuration to its defaults: %s',
  async (_, leave) => {
    const { url, hw, node } = await server()
    const config = () => hw.basin(BASIN).streamConfig('s')
    await hw.basin(BASIN).reconfigureStream('s', { retentionPolicy: 'infinite' })
    const session = await http2Client(url)
    const stream = session.request(
      { ':method': 'PUT', ':path': '/v1/streams/s', 'svc-basin': BASIN, 'content-type': 'application/json' },
      { endStream: false },
    )
    stream.on('error', () => {})
    await until(() => node.counts().requests === 1)
    leave(session)
    await until(() => node.counts().requests === 0)
    expect((await config()).retentionPolicy).toBe('infinite')
  },
)

test.each(['content-length: 100', 'transfer-encoding: chunked'])(
  'HTTP/1.1: an upload that breaks off is not taken for a complete one: %s',
  async (framing) => {
    const { port, hw, node } = await server()
    for (let i = 0; i < 50; i++) {
      const raw = new Raw(port)
      const chunk = framing.startsWith('t')
        ? `5\r\n${MESSAGE.toString('latin1')}\r\n`
        : MESSAGE.toString('latin1')
      raw.send(
        `POST ${R} HTTP/1.1\r\nhost: x\r\nsvc-basin: ${BASIN}\r\ncontent-type: application/protobuf\r\n${framing}\r\n\r\n${chunk}`,
      )
      await until(() => node.counts().requests === 1)
      if (i % 2 === 0) raw.socket.end()
      else raw.socket.destroy()
      await until(() => node.counts().requests === 0)
    }
    expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
  },
)

test.each(['h1', 'h2'])('%s: a handler that stops reading stops the client', async (protocol) => {
  let release!: () => void
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let isReading = false
  const { server: node } = await startServer(async (request) => {
    const reader = request.body!.getReader()
    await reader.read()
    isReading = true
    await released
    await reader.cancel()
    return new Response('done')
  })
  onTestFinished(() => release())
  const chunk = Buffer.alloc(64 * 1024)
  let write: () => boolean
  let isDrained = true
  if (protocol === 'h1') {
    const socket = connect(node.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000000\r\n\r\n')
    socket.on('drain', () => {
      isDrained = true
    })
    write = () => socket.write(chunk)
  } else {
    const session = await http2Client(node.url)
    const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false })
    stream.on('error', () => {})
    stream.on('drain', () => {
      isDrained = true
    })
    write = () => stream.write(chunk)
  }
  let sent = 0
  let idleTurns = 0
  // Until nothing has drained for a long while.
  await until(() => {
    if (isDrained && sent < 400e6) {
      isDrained = write()
      sent += chunk.length
      idleTurns = 0
    } else idleTurns++
    return isReading && (idleTurns > 20_000 || sent >= 400e6)
  })
  expect(sent).toBeLessThan(40e6)
})

import { expect, test } from 'vitest'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, until } from './support.ts'

const R = '/v1/streams/s/records'
// One record `a`: a complete AppendInput, to which more could be added.
const MESSAGE = Buffer.from([0x0a, 0x03, 0x1a, 0x01, 0x61])
const headers = { 'svc-basin': BASIN, 'content-type': 'application/protobuf' }

// Resets of an upload that was not ended are in test/node/cancellation.test.ts.
test('HTTP/2: an append whose upload is cut off with its connection stores nothing', async () => {
  const { url, hw, node } = await server()
  for (let i = 0; i < 5; i++) {
    const session = await http2Client(url)
    const stream = session.request({ ':method': 'POST', ':path': R, ...headers }, { endStream: false })
    stream.on('error', () => {})
    stream.write(MESSAGE)
    await until(() => node.counts().requests === 1)
    session.destroy()
    await until(() => node.counts().requests === 0)
  }
  expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
})

test('HTTP/2: a PUT whose body never arrives does not reset the configuration', async () => {
  const { url, hw, node } = await server()
  const config = () => hw.basin(BASIN).stream('s').config()
  await hw.basin(BASIN).stream('s').reconfigure({ retentionPolicy: 'infinite' })
  const session = await http2Client(url)
  const stream = session.request(
    { ':method': 'PUT', ':path': '/v1/streams/s', 'svc-basin': BASIN, 'content-type': 'application/json' },
    { endStream: false },
  )
  stream.on('error', () => {})
  await until(() => node.counts().requests === 1)
  session.destroy()
  await until(() => node.counts().requests === 0)
  expect((await config()).retentionPolicy).toBe('infinite')
})

const post = (more: Record<string, string>, body: string) => request('POST', R, { ...headers, ...more }, body)

test.each([
  ['with a length', post({ 'content-length': '100' }, MESSAGE.toString('latin1'))],
  ['in chunks', `${post({ 'transfer-encoding': 'chunked' }, '')}5\r\n${MESSAGE.toString('latin1')}\r\n`],
])('HTTP/1.1: a truncated upload %s is not appended', async (_, text) => {
  const { port, hw, node } = await server()
  for (let i = 0; i < 10; i++) {
    const raw = new Raw(port).send(text)
    await until(() => node.counts().requests === 1)
    if (i % 2 === 0) raw.socket.end()
    else raw.socket.destroy()
    await until(() => node.counts().requests === 0)
  }
  expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
})

const JSON_TYPE = { 'content-type': 'application/json' }
const AS_IS = (body: string) => post({ ...JSON_TYPE, 'content-length': String(body.length) }, body)
const CHUNKED = (body: string) =>
  `${post({ ...JSON_TYPE, 'transfer-encoding': 'chunked' }, '')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

test.each([
  ['with a length', AS_IS],
  ['in chunks', CHUNKED],
])('HTTP/1.1: a body %s is read whether it arrives with its headers or later', async (_, framed) => {
  const { port, node } = await server({ limits: { bodyBytes: 100 } })
  const raw = new Raw(port)
  for (const body of ['{"records":[{"body":"a"}]}', '{', `{"records":[${' '.repeat(100)}]}`, '']) {
    const text = body === '' ? AS_IS(body) : framed(body)
    const together = await raw.send(text).response()
    const bodyAt = text.indexOf('\r\n\r\n') + 4
    raw.send(text.slice(0, bodyAt))
    await until(() => node.counts().requests === 1 || raw.received !== '')
    raw.send(text.slice(bodyAt))
    const later = await raw.response()
    const shape = (text: string) => text.replace(/[0-9]+/g, '0')
    expect([later.status, shape(later.body)]).toEqual([together.status, shape(together.body)])
    expect(together.status).toBe(body.includes('"a"') ? 200 : 400)
  }
})

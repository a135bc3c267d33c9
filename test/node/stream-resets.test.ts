// @module-tag slow

import { type ClientHttp2Session, constants } from 'node:http2'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { END_HEADERS, END_STREAM, frame, OPENING } from './http2-frames.ts'
import { BASIN, server } from './raw.ts'
import { http2Client, http2Fetch, until } from './support.ts'

const RECORDS = '/v1/streams/s/records'
const HEADERS = { 'svc-basin': BASIN }
const [MAJOR, MINOR] = process.versions.node.split('.').map(Number) as [number, number]
/** How many sessions one connection may leave: Node before 22.10 permits 1,000 cancelled requests. */
const SESSIONS = MAJOR > 22 || (MAJOR === 22 && MINOR >= 10) ? 3_000 : 900

test('a connection survives many read sessions that its client leaves', { timeout: 240_000 }, async () => {
  const { hw, url } = await server()
  const client = await http2Client(url)
  let resets = 0
  const leaveSessions = async () => {
    while (resets++ < SESSIONS) await leaveSession(client)
  }
  await Promise.all(Array.from({ length: 20 }, leaveSessions))
  const append = { ...HEADERS, ':method': 'POST', ':path': RECORDS, 'content-type': 'application/json' }
  const { headers } = await http2Fetch(client, append, '{"records":[{"body":"a"}]}')
  expect(headers[':status']).toBe(200)
  await until(() => hw.stats().openReads === 0)
})

test('a flood of cancelled requests ends its connection, and no other', async () => {
  const { node, errors, url } = await server()
  const other = await http2Client(url)
  const flooding = connect(node.port, '127.0.0.1')
  flooding.on('error', () => {}).resume()
  flooding.write(OPENING)
  let streamId = 1
  while (!flooding.destroyed) {
    const requests: Buffer[] = []
    for (const end = streamId + 2_000; streamId < end; streamId += 2) {
      // `GET /` over `http`, from the static table, and its cancellation.
      requests.push(frame('headers', END_STREAM | END_HEADERS, streamId, [0x82, 0x86, 0x84]))
      requests.push(frame('rstStream', 0, streamId, [0, 0, 0, constants.NGHTTP2_CANCEL]))
    }
    await new Promise((resolve) => flooding.write(Buffer.concat(requests), resolve))
  }
  expect((await http2Fetch(other, { ':path': '/health' })).headers[':status']).toBe(200)
  expect(errors).toEqual([])
})

/** Opens a session that follows the stream, and leaves it once it is open. */
async function leaveSession(client: ClientHttp2Session): Promise<void> {
  const headers = { ...HEADERS, ':path': `${RECORDS}?seq_num=0`, accept: 'text/event-stream' }
  const session = client.request(headers)
  await new Promise((resolve, reject) => {
    session.once('response', resolve).once('error', reject)
  })
  const closed = new Promise((resolve) => session.once('close', resolve))
  session.close(constants.NGHTTP2_CANCEL)
  await closed
}

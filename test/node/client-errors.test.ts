import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { gated } from '../support/index.ts'
import { BASIN, exchange, Raw, request, server } from './raw.ts'

const RECORDS = '/v1/streams/s/records'
const HEADERS = { 'svc-basin': BASIN, 'content-type': 'application/json' }
const GARBAGE = '\x00\x01 this is not HTTP\r\n\r\n'
const append = (body: string) => request('POST', RECORDS, HEADERS, JSON.stringify({ records: [{ body }] }))
const read = (query: string, headers = {}) =>
  request('GET', `${RECORDS}?${query}`, { 'svc-basin': BASIN, ...headers })

async function start() {
  const storage = gated(memory())
  const { hw, node, port, errors } = await server({}, { storage })
  onTestFinished(() => expect(errors).toEqual([]))
  return { storage, node, port, stream: hw.basin(BASIN).stream('s'), raw: new Raw(port) }
}

describe('bytes that are not HTTP, after complete requests', () => {
  it('are answered after the ack of an append, in one packet with it', async () => {
    const { raw, stream } = await start()
    raw.send(append('kept') + GARBAGE)
    const ack = await raw.response()
    expect([ack.status, JSON.parse(ack.body).end.seq_num]).toEqual([200, 1])
    const { status, headers } = await raw.response()
    expect([status, headers.get('connection')]).toEqual([400, 'close'])
    await vi.waitUntil(() => raw.ended)
    expect((await stream.checkTail()).seqNum).toBe(1)
  })

  it('are answered after the acks of appends that are not durable yet', async () => {
    const { storage, raw, node, port } = await start()
    storage.holding = true
    raw.send(append('one') + append('two'))
    await vi.waitUntil(() => storage.held > 0)
    raw.send(GARBAGE).send(GARBAGE)
    raw.send(append('ignored'))
    // By then the server has read all of that.
    for (let i = 0; i < 3; i++) expect((await exchange(port, 'GET', '/health')).status).toBe(200)
    storage.holding = false
    storage.release()
    expect((await raw.response()).status).toBe(200)
    expect((await raw.response()).status).toBe(200)
    expect((await raw.response()).status).toBe(400)
    await vi.waitUntil(() => raw.ended)
    expect(raw.received).toBe('')
    raw.socket.end()
    await vi.waitUntil(() => node.counts().connections === 0)
  })

  it('are answered after a complete response, and end an upload that they interrupt', async () => {
    const { raw, node, stream } = await start()
    const headers = `Host: localhost\r\nsvc-basin: ${BASIN}\r\ncontent-type: application/json\r\n`
    const upload = `POST ${RECORDS} HTTP/1.1\r\n${headers}transfer-encoding: chunked\r\n\r\n5\r\n{"rec\r\nzzz\r\n`
    raw.send(append('kept') + upload)
    expect((await raw.response()).status).toBe(200)
    expect((await raw.response()).status).toBe(400)
    raw.socket.end()
    await vi.waitUntil(() => node.counts().requests === 0 && node.counts().connections === 0)
    expect((await stream.checkTail()).seqNum).toBe(1)
  })

  it('end a session, which has no end of its own', async () => {
    const { raw, node } = await start()
    raw.send(read('seq_num=0', { accept: 'text/event-stream' }))
    await raw.until('event: ping')
    raw.send(GARBAGE)
    await vi.waitUntil(() => raw.ended)
    expect(raw.received).not.toContain('400 Bad Request')
    await vi.waitUntil(() => node.counts().requests === 0)
  })
})

it('bytes that are not HTTP are answered at once, without earlier requests', async () => {
  const { raw } = await start()
  raw.send(GARBAGE)
  expect(await raw.response()).toMatchObject({ status: 400, body: '' })
  await vi.waitUntil(() => raw.ended)
})

import { describe, expect, it, vi } from 'vitest'
import { BASIN, Raw, request, server } from './raw.ts'

const RECORDS = '/v1/streams/s/records'
const UPLOAD = { 'svc-basin': BASIN, 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
const GARBAGE = '\x00\x01 this is not HTTP\r\n\r\n'

describe('bytes that are not HTTP', () => {
  it.each([
    ['at the beginning of a connection', GARBAGE],
    ['within an upload', `${request('POST', RECORDS, UPLOAD)}5\r\n{"rec\r\nzzz\r\n`],
  ])('are 400, and end the connection: %s', async (_title, bytes) => {
    const { hw, node, port, errors } = await server()
    const raw = new Raw(port).send(bytes)
    expect(await raw.response()).toMatchObject({ status: 400, body: '' })
    raw.socket.end()
    await vi.waitUntil(() => node.counts().requests === 0 && node.counts().connections === 0)
    expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
    expect(errors).toEqual([])
  })

  it('end a session, which has no end of its own', async () => {
    const { node, port, errors } = await server()
    const headers = { 'svc-basin': BASIN, accept: 'text/event-stream' }
    const raw = new Raw(port).send(request('GET', `${RECORDS}?seq_num=0`, headers))
    await raw.until('event: ping')
    raw.send(GARBAGE)
    await vi.waitUntil(() => raw.ended)
    expect(raw.received).not.toContain('400 Bad Request')
    await vi.waitUntil(() => node.counts().requests === 0)
    expect(errors).toEqual([])
  })
})

import { expect, test } from 'vitest'
import { REJECTED } from '../http/rejected-requests.ts'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

const TAIL = '/v1/streams/s/records/tail'
const basin = { 'svc-basin': BASIN }

/** The rejected requests by request, which are many on one connection. */
const ROWS = REJECTED.map(([line, reply, title, { headers, body = '' }]) => {
  const [method, target] = line.split(' ') as [string, string]
  const [status, code = ''] = reply.split(' ')
  const bytes = Buffer.from(body)
  return {
    title: `${line.slice(0, 60)}: ${title}`,
    method,
    target,
    headers,
    bytes,
    status: Number(status),
    code,
  }
})

const codeIn = (body: string) => (JSON.parse(body) as { code?: string }).code ?? ''

test('one HTTP/1.1 connection is kept alive over every rejected request', { tags: ['slow'] }, async () => {
  const { port, node, errors } = await server()
  const raw = new Raw(port)
  for (const { title, method, target, headers, bytes, status, code } of ROWS) {
    raw.send(request(method, target, headers, bytes.toString('latin1')))
    const response = await raw.response()
    expect([title, response.status, codeIn(response.body)]).toEqual([title, status, code])
  }
  raw.send(request('GET', TAIL, basin))
  expect((await raw.response()).body).toContain('"seq_num":0')
  expect(node.counts().connections).toBe(1)
  expect(errors).toEqual([])
})

test('one HTTP/2 connection carries every rejected request, with each reply in one frame', {
  tags: ['slow'],
}, async () => {
  const { url, node, errors } = await server()
  const session = await http2Client(url)
  for (const { title, method, target, headers, bytes, status, code } of ROWS) {
    const { host, ...others } = headers
    const sent = { ':method': method, ':path': target, ...others, ...(host && { ':authority': host }) }
    const reply = await http2Fetch(session, sent, bytes.length === 0 ? undefined : bytes)
    expect([title, reply.headers[':status'], codeIn(reply.body)]).toEqual([title, status, code])
    expect(reply.dataSizes).toHaveLength(1)
  }
  expect((await http2Fetch(session, { ':path': TAIL, ...basin })).body).toContain('"seq_num":0')
  expect(node.counts().http2Sessions).toBe(1)
  expect(errors).toEqual([])
})

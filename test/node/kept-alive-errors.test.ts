import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

const basin = { 'svc-basin': BASIN }
const json = { ...basin, 'content-type': 'application/json' }
const R = '/v1/streams/s/records'
const rle = (blocks: number) => {
  const out = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]
  for (let i = 0; i < blocks; i++) {
    const header = ((131_072 << 3) | (1 << 1) | (i === blocks - 1 ? 1 : 0)) >>> 0
    out.push(header & 255, (header >> 8) & 255, (header >> 16) & 255, 0x20)
  }
  return String.fromCharCode(...out)
}
const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

type Bad = readonly [
  name: string,
  method: string,
  target: string,
  headers: Record<string, string>,
  body: string,
  status: number,
  code: string | null,
]
const BAD: readonly Bad[] = [
  ['unknown route', 'GET', '/nope', {}, '', 404, 'not_found'],
  ['unknown route with a body', 'POST', '/nope', {}, 'x'.repeat(100_000), 404, 'not_found'],
  ['wrong method', 'DELETE', R, basin, '', 405, 'method_not_allowed'],
  ['wrong method with a body', 'PATCH', R, json, '{"records":[{}]}', 405, 'method_not_allowed'],
  [
    'unsupported coding',
    'POST',
    R,
    { ...json, 'content-encoding': 'br' },
    'xxxx',
    415,
    'unsupported_encoding',
  ],
  [
    'two codings',
    'POST',
    R,
    { ...json, 'content-encoding': 'gzip, gzip' },
    'xxxx',
    415,
    'unsupported_encoding',
  ],
  ['bad gzip', 'POST', R, { ...json, 'content-encoding': 'gzip' }, 'xxxx', 400, 'bad_json'],
  ['bad zstd', 'POST', R, { ...json, 'content-encoding': 'zstd' }, 'xxxx', 400, 'bad_json'],
  ['zstd bomb', 'POST', R, { ...json, 'content-encoding': 'zstd' }, rle(512), 400, 'bad_json'],
  [
    'gzip bomb',
    'POST',
    R,
    { ...json, 'content-encoding': 'gzip' },
    latin(gzipSync(Buffer.alloc(100_000_000))),
    400,
    'bad_json',
  ],
  [
    'proto gzip bomb',
    'POST',
    R,
    { ...basin, 'content-type': 'application/protobuf', 'content-encoding': 'gzip' },
    latin(gzipSync(Buffer.alloc(100_000_000))),
    400,
    'bad_proto',
  ],
  [
    'bad proto',
    'POST',
    R,
    { ...basin, 'content-type': 'application/protobuf' },
    '\xff\xff\xff',
    400,
    'bad_proto',
  ],
  ['too large', 'POST', R, json, 'x'.repeat(2_097_153), 400, 'bad_json'],
  [
    'too large proto',
    'POST',
    R,
    { ...basin, 'content-type': 'application/x-protobuf' },
    'x'.repeat(3_000_000),
    400,
    'bad_proto',
  ],
  ['no content type', 'POST', R, basin, '{"records":[{}]}', 400, 'bad_json'],
  ['no basin', 'GET', R, {}, '', 400, 'bad_header'],
  ['bad basin', 'GET', R, { 'svc-basin': 'A' }, '', 400, 'bad_header'],
  ['two basins', 'GET', R, { 'svc-basin': BASIN, 's2-basin': 'other' }, '', 400, 'bad_header'],
  ['host and header differ', 'GET', R, { ...basin, host: 'other.localhost' }, '', 400, 'bad_header'],
  ['bad format', 'GET', R, { ...basin, 'svc-format': 'RAW' }, '', 400, 'bad_header'],
  [
    'bad format for protobuf',
    'GET',
    R,
    { ...basin, 'svc-format': 'RAW', accept: 'application/protobuf' },
    '',
    400,
    'bad_header',
  ],
  ['empty key', 'GET', R, { ...basin, 'svc-encryption-key': '' }, '', 400, 'bad_header'],
  [
    'long key',
    'POST',
    R,
    { ...json, 'svc-encryption-key': 'x'.repeat(45) },
    '{"records":[{}]}',
    400,
    'bad_header',
  ],
  [
    'order: key before body',
    'POST',
    R,
    { ...json, 'svc-encryption-key': 'x'.repeat(45) },
    '{',
    400,
    'bad_header',
  ],
  ['order: basin before query', 'GET', `${R}?seq_num=x`, {}, '', 400, 'bad_header'],
  [
    'order: query before key',
    'GET',
    `${R}?seq_num=x`,
    { ...basin, 'svc-encryption-key': 'x'.repeat(45) },
    '',
    400,
    'bad_query',
  ],
  [
    'order: format before 422',
    'GET',
    `${R}?seq_num=0&timestamp=0`,
    { ...basin, 'svc-format': 'x' },
    '',
    400,
    'bad_header',
  ],
  [
    'order: 422 before lookup',
    'GET',
    '/v1/streams/nope/records?seq_num=0&timestamp=0',
    basin,
    '',
    422,
    'invalid',
  ],
  ['order: body before lookup', 'POST', '/v1/streams/nope/records', json, '{', 400, 'bad_json'],
  ['order: batch before lookup', 'POST', '/v1/streams/nope/records', json, '{"records":[]}', 422, 'invalid'],
  ['order: path before query', 'GET', '/v1/streams/%ff/records?seq_num=x', basin, '', 400, 'bad_path'],
  [
    'order: token before basin header before body',
    'POST',
    '/v1/streams',
    { 'content-type': 'application/json', 'svc-request-token': 'x'.repeat(37) },
    '{',
    400,
    'bad_header',
  ],
  ['missing stream', 'GET', '/v1/streams/nope/records', basin, '', 404, 'stream_not_found'],
  ['missing basin', 'GET', R, { 'svc-basin': 'nope-nope' }, '', 404, 'basin_not_found'],
  [
    'missing stream, SSE',
    'GET',
    '/v1/streams/nope/records',
    { ...basin, accept: 'text/event-stream' },
    '',
    404,
    'stream_not_found',
  ],
  [
    'missing stream, session',
    'GET',
    '/v1/streams/nope/records',
    { ...basin, 'content-type': 's2s/proto' },
    '',
    404,
    'stream_not_found',
  ],
  [
    'missing stream, append session',
    'POST',
    '/v1/streams/nope/records',
    { ...basin, 'content-type': 's2s/proto' },
    'xxxx',
    404,
    'stream_not_found',
  ],
  ['bad list prefix', 'GET', '/v1/basins?prefix=A', {}, '', 400, 'bad_query'],
  ['bad list limit', 'GET', '/v1/basins?limit=-1', {}, '', 400, 'bad_query'],
  ['limit twice', 'GET', '/v1/streams?limit=1&limit=1', basin, '', 400, 'bad_query'],
  ['unknown enum', 'PUT', '/v1/streams/x', json, '{"storage_class":"slow"}', 400, 'bad_json'],
  ['age 0', 'PUT', '/v1/streams/x', json, '{"retention_policy":{"age":0}}', 422, 'invalid'],
  [
    'age and infinite',
    'PUT',
    '/v1/streams/x',
    json,
    '{"retention_policy":{"age":1,"infinite":{}}}',
    400,
    'bad_json',
  ],
  [
    'short name by POST',
    'POST',
    '/v1/basins',
    { 'content-type': 'application/json' },
    '{"basin":"short"}',
    400,
    'bad_json',
  ],
  ['PUT of text', 'PUT', '/v1/streams/x', { ...basin, 'content-type': 'text/plain' }, 'x', 400, 'bad_json'],
  ['PATCH without content type', 'PATCH', '/v1/streams/s', basin, '{}', 400, 'bad_json'],
  [
    'scope of elsewhere',
    'PUT',
    '/v1/basins/elsewhere',
    { 'content-type': 'application/json' },
    '{"scope":"aws:eu-west-1"}',
    422,
    'invalid',
  ],
  [
    'stream config header',
    'POST',
    R,
    { ...json, 'svc-stream-config': '{' },
    '{"records":[{}]}',
    400,
    'bad_header',
  ],
  ['token mismatch', 'POST', R, json, '{"records":[{}],"fencing_token":"x","match_seq_num":9}', 412, null],
  ['416', 'GET', R, basin, '', 416, null],
]

describe('each error over one kept-alive connection', () => {
  test.each(BAD)('%s', async (_, method, target, headers, body, status, code) => {
    const { port, hw, errors } = await server({ cors: true })
    const raw = new Raw(port)
    raw.send(request(method, target, { origin: 'https://page.example', ...headers }, body))
    const response = await raw.response()
    expect(response.status).toBe(status)
    expect(response.headers.get('access-control-allow-origin')).toBe('https://page.example')
    if (code !== null) {
      const { code: actual, message, ...rest } = JSON.parse(response.body)
      expect([actual, typeof message, rest, response.headers.get('content-type')]).toEqual([
        code,
        'string',
        {},
        'application/json',
      ])
      expect(message).not.toMatch(/node_modules|\/work\/|\bat \w+ \(|undefined|\[object|NaN/)
    } else if (status < 410 || status === 415) expect(response.body).toBe('')
    raw.send(request('GET', `${R}/tail`, basin))
    const tail = await raw.response()
    expect([tail.status, JSON.parse(tail.body).tail.seq_num]).toEqual([200, 0])
    expect(errors).toEqual([])
    expect((await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)).toEqual(['s'])
    const session = await http2Client(`http://127.0.0.1:${port}`)
    const { host, ...rest } = headers
    const h2 = await http2Fetch(
      session,
      { ':method': method, ':path': target, ...rest, ...(host && { ':authority': host }) },
      body === '' ? undefined : Buffer.from(body, 'latin1'),
    )
    expect(h2.headers[':status']).toBe(status)
    if (code !== null) expect([JSON.parse(h2.body).code, h2.dataSizes.length]).toEqual([code, 1])
    expect((await http2Fetch(session, { ':path': `${R}/tail`, ...basin })).body).toContain('"seq_num":0')
  })
})

import fc from 'fast-check'
import { concatBytes } from '../../../src/model/bytes.ts'
import { encodeMessageFrame } from '../../../src/wire/frame.ts'
import { inputMessage } from '../../http/inputs.ts'
import { HOSTILE_ZSTD, rawBlock, zstdFrame } from '../../wire/zstd-data.ts'

/**
 * Requests as text, for damage: a line with method and path, header lines, an empty line, and the body. One
 * character is one byte.
 */

const NEXT = '\n>>>\n'

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer>
}

/** Parses the part of the text that a client can send. */
export function requestsOf(text: string): HttpRequest[] {
  return text.split(NEXT).flatMap((part) => {
    const [head, body] = cut(part, '\n\n')
    const [line = '', ...lines] = head.split('\n')
    const [method, path] = cut(line, ' ')
    const address = `http://localhost${path.startsWith('/') ? '' : '/'}${path}`
    if (!/^[A-Z]{1,20}$/.test(method) || /^(CONNECT|TRACE|TRACK)$/.test(method)) return []
    if (!URL.canParse(address)) return []
    return [{ method, url: new URL(address), headers: headersOf(lines), body: latin1(body) }]
  })
}

function cut(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)]
}

function headersOf(lines: readonly string[]): Headers {
  const headers = new Headers()
  for (const line of lines) {
    const [name, value] = cut(line, ':')
    try {
      headers.append(name, value.replace(/[^\0-\xff]/g, '?'))
    } catch {
      // No client can send this.
    }
  }
  return headers
}

function latin1(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

function request(line: string, headers: readonly string[] = [], body: string | Uint8Array = ''): string {
  const content = typeof body === 'string' ? body : Buffer.from(body).toString('latin1')
  return `${[line, ...headers].join('\n')}\n\n${content}`
}

const BASIN = 'svc-basin: my-basin'
const SEALED = 'svc-basin: sealed-basin'
const KEY = `svc-encryption-key: ${Buffer.alloc(32, 7).toString('base64')}`
const JSON_BODY = 'content-type: application/json'
const PROTO = 'content-type: application/protobuf'
const SESSION = 'content-type: s2s/proto'
const EVENTS = 'accept: text/event-stream'
const ZSTD = 'content-encoding: zstd'
const APPEND = 'POST /v1/streams/s/records'
const READ = 'GET /v1/streams/s/records'
const METRICS = 'start=1735600000&end=1735689600'

const ONE = inputMessage(['one'])
const FRAMES = concatBytes([
  encodeMessageFrame(ONE),
  encodeMessageFrame(inputMessage(['two', 'three'], { matchSeqNum: 4 })),
])
const IN_ZSTD = zstdFrame({ window: 0, blocks: [rawBlock(ONE, true)] })
/** The shorter ones: damage repeats them. */
const BOMBS = HOSTILE_ZSTD.map(([, data]) => data).filter(({ length }) => length <= 4096)

const withBody = (line: string, body: string, ...headers: string[]) =>
  request(line, [JSON_BODY, ...headers], body)
const onStream = (line: string, ...headers: string[]) => request(line, [BASIN, ...headers])

const REQUESTS = [
  request('GET /v1/basins?prefix=my&limit=2'),
  withBody(
    'POST /v1/basins',
    '{"basin":"new-basin","config":{"create_stream_on_read":true}}',
    'svc-request-token: t',
  ),
  withBody(
    'PUT /v1/basins/my-basin',
    '{"config":{"stream_cipher":"aes-256-gcm"},"location":"aws:us-east-1"}',
  ),
  withBody('PATCH /v1/basins/my-basin', '{"default_stream_config":{"retention_policy":{"age":60}}}'),
  request('DELETE /v1/basins/my-basin'),
  onStream('GET /v1/streams?prefix=s'),
  withBody('POST /v1/streams', '{"stream":"t","config":{"timestamping":{"mode":"arrival"}}}', BASIN),
  withBody('PUT /v1/streams/a%2Fb', '{"delete_on_empty":{"min_age_secs":5}}', BASIN),
  withBody('PATCH /v1/streams/s', '{"retention_policy":{"infinite":{}}}', BASIN),
  onStream('DELETE /v1/streams/s'),
  withBody(APPEND, '{"records":[{"body":"x","headers":[["a","b"]]}],"match_seq_num":3}', BASIN),
  withBody(APPEND, '{"records":[{"body":"f","headers":[["","fence"]]}]}', BASIN),
  withBody(
    APPEND,
    '{"records":[{"body":"AAAAAAAAAAI=","headers":[["","dHJpbQ=="]]}]}',
    BASIN,
    'svc-format: base64',
  ),
  request(APPEND, [BASIN, PROTO, 'accept: application/protobuf'], ONE),
  request(APPEND, [BASIN, SESSION], FRAMES),
  request(APPEND, [BASIN, PROTO, ZSTD], IN_ZSTD),
  request(APPEND, [BASIN, SESSION], encodeMessageFrame(IN_ZSTD, { compression: 'zstd' })),
  ...BOMBS.flatMap((bomb) => [
    request(APPEND, [BASIN, PROTO, ZSTD], bomb),
    request(APPEND, [BASIN, SESSION], encodeMessageFrame(bomb, { compression: 'zstd' })),
  ]),
  withBody(
    'POST /v1/streams/new/records',
    '{"records":[{}]}',
    BASIN,
    'svc-stream-config: {"storage_class":"standard"}',
  ),
  onStream('GET /v1/streams/s/records/tail'),
  onStream(`${READ}?seq_num=0&count=2`, 'accept-encoding: gzip'),
  onStream(`${READ}?timestamp=5&bytes=100`, 'svc-format: base64'),
  onStream(`${READ}?tail_offset=1&wait=5`, 'accept: application/protobuf'),
  onStream(`${READ}?seq_num=9&clamp=true&wait=60`),
  onStream(`${READ}?seq_num=0`, EVENTS),
  onStream(`${READ}?count=9`, EVENTS, 'last-event-id: 0,1,9'),
  onStream(`${READ}?seq_num=0`, SESSION, 'accept-encoding: zstd'),
  request(`${READ}?seq_num=0&wait=0`, ['s2-basin: my-basin', SESSION]),
  withBody('POST /v1/streams/e/records', '{"records":[{"body":"secret"}]}', SEALED, KEY),
  request('GET /v1/streams/e/records?seq_num=0', [SEALED, KEY]),
  request('GET /v1/access-tokens?prefix=a'),
  withBody(
    'POST /v1/access-tokens',
    '{"id":"a","scope":{"ops":["read"],"basins":{"prefix":""}},"expires_at":"2030-01-01T00:00:00Z"}',
  ),
  request('DELETE /v1/access-tokens/a'),
  request(`GET /v1/metrics?set=account-ops&${METRICS}&interval=hour`),
  request(`GET /v1/metrics/my-basin/s?set=storage&${METRICS}`),
  withBody('PUT /v1/locations/default', '"aws:us-east-1"'),
  request('OPTIONS /v1/basins', ['origin: http://a', 'access-control-request-method: PUT']),
  request('GET /health'),
  request('GET /metrics'),
]

export const someRequests: fc.Arbitrary<string> = fc
  .array(fc.constantFrom(...REQUESTS), { minLength: 1, maxLength: 3 })
  .map((requests) => requests.join(NEXT))

export const REQUEST_WORDS = [
  ...['GET ', 'POST ', 'PUT ', 'PATCH ', 'DELETE ', 'HEAD ', 'OPTIONS ', NEXT],
  ...'/v1/ /streams/ /records %2F ?seq_num= &wait=60 &wait=0 &count= &clamp=true &until='.split(' '),
  ...[BASIN, SEALED, JSON_BODY, PROTO, SESSION, KEY, EVENTS, ZSTD].map((header) => `\n${header}\n`),
  ...['svc-format: base64', 'accept-encoding: zstd', 'last-event-id: 0,0,0'].map((header) => `\n${header}\n`),
  ...'{"records":[]} {"records":[{"headers":[["","trim"]]}]} "match_seq_num": "fencing_token": null'.split(
    ' ',
  ),
]

import fc from 'fast-check'
import { concatBytes } from '../../../src/model/bytes.ts'
import { encodeMessageFrame } from '../../../src/wire/session-frames.ts'
import { inputMessage } from '../../http/inputs.ts'
import { HOSTILE_ZSTD, rawBlock, zstdFrame } from '../../wire/zstd-data.ts'

/**
 * Requests as text, for mutations: a line with method and path, header lines, an empty line, and the body.
 * One character is one byte.
 */

const NEXT = '\n>>>\n'
export const AUTHORITY = 'localhost'

export interface HttpRequest {
  readonly method: string
  /** Includes the query. */
  readonly path: string
  readonly headers: Headers
  readonly body: Uint8Array
}

/**
 * Parses the part of the text that a client can send: header names and values that `Headers` rejects are
 * omitted.
 */
export function requestsOf(text: string): HttpRequest[] {
  return text.split(NEXT).flatMap((part) => {
    const [head = '', body = ''] = cut(part, '\n\n')
    const [line = '', ...lines] = head.split('\n')
    const [method = '', path = ''] = cut(line, ' ')
    const request = {
      method,
      path: path.startsWith('/') ? path : `/${path}`,
      headers: headersOf(lines),
      body: latin1(body),
    }
    return isPossible(request) ? [request] : []
  })
}

function cut(text: string, separator: string): string[] {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + separator.length)]
}

function headersOf(lines: readonly string[]): Headers {
  const headers = new Headers()
  for (const line of lines) {
    const [name = '', value = ''] = cut(line, ':')
    try {
      headers.append(name, latin1Text(value))
    } catch {
      // No client can send this.
    }
  }
  return headers
}

function isPossible({ method, path }: HttpRequest): boolean {
  if (!/^[A-Z]{1,20}$/.test(method) || /^(CONNECT|TRACE|TRACK)$/.test(method)) return false
  return URL.canParse(`http://${AUTHORITY}${path}`)
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

function latin1Text(text: string): string {
  return text.replace(/[^\0-\xff]/g, '?')
}

function request(line: string, headers: readonly string[] = [], body: string | Uint8Array = ''): string {
  const content = typeof body === 'string' ? body : Buffer.from(body).toString('latin1')
  return `${[line, ...headers].join('\n')}\n\n${content}`
}

const BASIN = 'svc-basin: my-basin'
const JSON_BODY = 'content-type: application/json'
const PROTO = 'content-type: application/protobuf'
const SESSION = 'content-type: s2s/proto'
const KEY = `svc-encryption-key: ${Buffer.alloc(32, 7).toString('base64')}`
const ONE = inputMessage(['one'])
const FRAMES = concatBytes([
  encodeMessageFrame(ONE),
  encodeMessageFrame(inputMessage(['two', 'three'], { matchSeqNum: 4 })),
])
const ONE_IN_ZSTD = zstdFrame({ window: 0, blocks: [rawBlock(ONE, true)] })
const ZSTD = 'content-encoding: zstd'
/** The shorter ones: mutations repeat them. */
const BOMBS = HOSTILE_ZSTD.map(([, data]) => data).filter(({ length }) => length <= 4096)

const REQUESTS = [
  request('GET /v1/basins?prefix=my&limit=2'),
  request(
    'POST /v1/basins',
    [JSON_BODY, 'svc-request-token: t'],
    '{"basin":"new-basin","config":{"create_stream_on_read":true}}',
  ),
  request(
    'PUT /v1/basins/my-basin',
    [JSON_BODY],
    '{"config":{"stream_cipher":"aes-256-gcm"},"location":"aws:us-east-1"}',
  ),
  request(
    'PATCH /v1/basins/my-basin',
    [JSON_BODY],
    '{"default_stream_config":{"retention_policy":{"age":60}}}',
  ),
  request('GET /v1/basins/my-basin'),
  request('DELETE /v1/basins/my-basin'),
  request('GET /v1/streams?prefix=s', [BASIN]),
  request(
    'POST /v1/streams',
    [BASIN, JSON_BODY],
    '{"stream":"t","config":{"timestamping":{"mode":"arrival"}}}',
  ),
  request('PUT /v1/streams/a%2Fb', [BASIN, JSON_BODY], '{"delete_on_empty":{"min_age_secs":5}}'),
  request('PATCH /v1/streams/s', [BASIN, JSON_BODY], '{"retention_policy":{"infinite":{}}}'),
  request('GET /v1/streams/s', [BASIN]),
  request('DELETE /v1/streams/s', [BASIN]),
  request(
    'POST /v1/streams/s/records',
    [BASIN, JSON_BODY],
    '{"records":[{"body":"x","headers":[["a","b"]]}],"match_seq_num":3}',
  ),
  request(
    'POST /v1/streams/s/records',
    [BASIN, JSON_BODY],
    '{"records":[{"body":"f","headers":[["","fence"]]}]}',
  ),
  request(
    'POST /v1/streams/s/records',
    [BASIN, JSON_BODY, 'svc-format: base64'],
    '{"records":[{"body":"AAAAAAAAAAI=","headers":[["","dHJpbQ=="]]}]}',
  ),
  request('POST /v1/streams/s/records', [BASIN, PROTO, 'accept: application/protobuf'], ONE),
  request('POST /v1/streams/s/records', [BASIN, SESSION], FRAMES),
  request('POST /v1/streams/s/records', [BASIN, PROTO, ZSTD], ONE_IN_ZSTD),
  request(
    'POST /v1/streams/s/records',
    [BASIN, SESSION],
    encodeMessageFrame(ONE_IN_ZSTD, { compression: 'zstd' }),
  ),
  ...BOMBS.flatMap((bomb) => [
    request('POST /v1/streams/s/records', [BASIN, PROTO, ZSTD], bomb),
    request(
      'POST /v1/streams/s/records',
      [BASIN, SESSION],
      encodeMessageFrame(bomb, { compression: 'zstd' }),
    ),
  ]),
  request(
    'POST /v1/streams/new/records',
    [BASIN, JSON_BODY, 'svc-stream-config: {"storage_class":"standard"}'],
    '{"records":[{}]}',
  ),
  request('GET /v1/streams/s/records/tail', [BASIN]),
  request('GET /v1/streams/s/records?seq_num=0&count=2', [BASIN, 'accept-encoding: gzip']),
  request('GET /v1/streams/s/records?timestamp=5&bytes=100', [BASIN, 'svc-format: base64']),
  request('GET /v1/streams/s/records?tail_offset=1&wait=5', [BASIN, 'accept: application/protobuf']),
  request('GET /v1/streams/s/records?seq_num=9&clamp=true&wait=60', [BASIN]),
  request('GET /v1/streams/s/records?seq_num=0', [BASIN, 'accept: text/event-stream']),
  request('GET /v1/streams/s/records?count=9', [BASIN, 'accept: text/event-stream', 'last-event-id: 0,1,9']),
  request('GET /v1/streams/s/records?seq_num=0', [BASIN, SESSION, 'accept-encoding: zstd']),
  request('GET /v1/streams/s/records?seq_num=0&wait=0', ['s2-basin: my-basin', SESSION]),
  request(
    'POST /v1/streams/e/records',
    ['svc-basin: sealed-basin', KEY, JSON_BODY],
    '{"records":[{"body":"secret"}]}',
  ),
  request('GET /v1/streams/e/records?seq_num=0', ['svc-basin: sealed-basin', KEY]),
  request('GET /v1/access-tokens?prefix=a'),
  request(
    'POST /v1/access-tokens',
    [JSON_BODY],
    '{"id":"a","scope":{"ops":["read"],"basins":{"prefix":""}},"expires_at":"2030-01-01T00:00:00Z"}',
  ),
  request('DELETE /v1/access-tokens/a'),
  request('GET /v1/metrics?set=account-ops&start=1735600000&end=1735689600&interval=hour'),
  request('GET /v1/metrics/my-basin?set=storage&start=1735600000&end=1735689600'),
  request('GET /v1/metrics/my-basin/s?set=storage&start=1735600000&end=1735689600'),
  request('GET /v1/locations'),
  request('PUT /v1/locations/default', [JSON_BODY], '"aws:us-east-1"'),
  request('OPTIONS /v1/basins', ['origin: http://a', 'access-control-request-method: PUT']),
  request('GET /health'),
  request('GET /metrics'),
]

export const someRequests: fc.Arbitrary<string> = fc
  .array(fc.constantFrom(...REQUESTS), { minLength: 1, maxLength: 3 })
  .map((requests) => requests.join(NEXT))

export const REQUEST_WORDS = [
  ...[
    'GET ',
    'POST ',
    'PUT ',
    'PATCH ',
    'DELETE ',
    'HEAD ',
    'OPTIONS ',
    NEXT,
    '/v1/',
    '/streams/',
    '/records',
    '%2F',
  ],
  ...[
    '?seq_num=',
    '&wait=60',
    '&wait=0',
    '&count=',
    '&clamp=true',
    '&until=',
    `\n${BASIN}\n`,
    '\nsvc-basin: sealed-basin',
  ],
  ...[
    `\n${JSON_BODY}`,
    `\n${PROTO}`,
    `\n${SESSION}`,
    `\n${KEY}`,
    '\naccept: text/event-stream',
    '\nsvc-format: base64',
  ],
  ...[
    '\ncontent-encoding: gzip',
    '\ncontent-encoding: zstd',
    '\naccept-encoding: zstd',
    '\nlast-event-id: 0,0,0',
  ],
  ...[
    '{"records":[]}',
    '{"records":[{"headers":[["","trim"]]}]}',
    '"match_seq_num":',
    '"fencing_token":',
    'null',
  ],
]

import { gzipSync } from 'node:zlib'

const BASIN = 'test-basin'
const R = '/v1/streams/s/records'
const MISSING = '/v1/streams/none/records'
const LONG_NAME = 'x'.repeat(513)
/** An append that is valid but for its length of 2 MiB and a byte. */
const LARGE = `{"records":[{}]${' '.repeat(2_097_137)}}`
const LONG_TOKEN = { 'svc-request-token': 'x'.repeat(37) }
const LONG_KEY = { 'svc-encryption-key': 'x'.repeat(45) }
const NO_FORMAT = { 'svc-format': 'x' }
const SESSION = { 'content-type': 's2s/proto' }
const EVENTS = { accept: 'text/event-stream' }
const PROTOBUF = { accept: 'application/protobuf' }
const BOMB = gzipSync(Buffer.alloc(16_000_000))

type Headers = Readonly<Record<string, string>>
interface Sent {
  readonly headers: Headers
  readonly body?: string | Uint8Array
}

/** To the basin of the tests, without a body. */
const plain = (headers: Headers = {}): Sent => ({ headers: { 'svc-basin': BASIN, ...headers } })
const without = (headers: Headers = {}): Sent => ({ headers })
const typed = (type: string, body: string | Uint8Array, headers: Headers = {}): Sent => ({
  headers: { 'svc-basin': BASIN, 'content-type': type, ...headers },
  body,
})
const text = (body: string | Uint8Array, headers?: Headers) => typed('application/json', body, headers)
const json = (value: unknown, headers?: Headers) => text(JSON.stringify(value), headers)
const record = (member: object, headers?: Headers) => json({ records: [member] }, headers)
const proto = (body: string | Uint8Array, headers?: Headers) => typed('application/protobuf', body, headers)
const coded = (coding: string, body: string | Uint8Array = 'xxxx') =>
  text(body, { 'content-encoding': coding })
const untyped = (body: string): Sent => ({ ...plain(), body: Buffer.from(body) })
const token = (member: object) => json({ id: 'x', scope: { ops: ['read'] }, ...member })
const scope = (member: object) => token({ scope: { ops: ['read'], ...member } })
const expiring = (date: unknown) => token({ expires_at: date })
const configured = (config: string) => record({}, { 'svc-stream-config': config })

/** The status and the code of a reply, what is wrong with the request, and a part of the message. */
type Row = readonly [reply: `${number} ${string}`, title: string, sent: Sent, message?: string]
export type Rejected = readonly [request: string, ...Row]

const at = (request: string, ...rows: readonly Row[]) => rows.map((row): Rejected => [request, ...row])
/** A request that is wrong because of its path. */
const path = (reply: Row[0], request: string, title: string, sent = plain(), message?: string): Rejected =>
  message === undefined ? [request, reply, title, sent] : [request, reply, title, sent, message]

/** Requests that are wrong in one way, or in two, to show which is reported. None has an effect. */
export const REJECTED: readonly Rejected[] = [
  path('404 not_found', 'GET /', 'the root'),
  path('404 not_found', 'GET /v1', 'half a path'),
  path('404 not_found', 'GET /v2/basins', 'another version'),
  path('404 not_found', 'GET /v1/basins/', 'a slash behind', plain(), 'no endpoint has this path'),
  path('404 not_found', 'GET /v1/streams//records', 'an empty name'),
  path('404 not_found', 'GET /v1/basins/b/c', 'a path that goes on'),
  path('404 not_found', 'POST /nope', 'a body', text('x'.repeat(100_000))),
  path('405 method_not_allowed', `DELETE ${R}`, 'another method', plain(), 'only GET, HEAD, POST'),
  path('405 method_not_allowed', `PATCH ${R}`, 'another method with a body', record({})),
  path('400 bad_path', 'GET /v1/streams/%ff/records', 'no UTF-8'),
  path('400 bad_path', 'GET /v1/streams/%zz', 'no encoding'),
  path('400 bad_path', 'GET /v1/streams/%C0%AF/records/tail', 'an overlong encoding'),
  path('400 bad_path', 'GET /v1/streams/%ED%A0%80', 'half a surrogate pair'),
  path('400 bad_path', `PUT /v1/streams/${LONG_NAME}`, 'a stream of 513 bytes'),
  path('400 bad_path', `POST /v1/streams/${'%C3%A9'.repeat(257)}/records`, 'a stream of 514 bytes'),
  path('400 bad_path', 'PUT /v1/streams/a%00', 'U+0000', plain(), 'must not contain U+0000'),
  path('400 bad_path', 'GET /v1/basins/UPPER', 'a basin in capitals'),
  path('400 bad_path', 'PUT /v1/basins/-ab', 'a basin that begins with a dash'),
  path('400 bad_path', `DELETE /v1/basins/${'x'.repeat(49)}`, 'a basin of 49 bytes'),
  path('400 bad_path', 'PATCH /v1/basins/a%2Fb', 'a slash in a basin'),
  path('400 bad_path', 'DELETE /v1/access-tokens/%ff', 'a token that is not UTF-8'),
  path('400 bad_path', `DELETE /v1/access-tokens/${'x'.repeat(97)}`, 'a token of 97 bytes'),
  path('400 bad_path', 'GET /v1/streams/%ff/records?seq_num=x', 'a bad query, too'),
  path('400 bad_path', 'PATCH /v1/streams/%ff', 'a bad body, too', text('{')),

  ...at(
    `GET ${R}`,
    ['400 bad_header', 'no basin', without(), 'Missing header `svc-basin`'],
    ['400 bad_header', 'no basin, s2', without({ 's2-format': 'raw' }), 'Missing header `s2-basin`'],
    ['400 bad_header', 'no basin, another header of s2', without({ 's2-x': '1', s2: '1' }), '`svc-basin`'],
    ['400 bad_header', 'no basin, a session of s2', without(SESSION), 'Missing header `s2-basin`'],
    ['400 bad_header', 'a bad basin', plain({ 'svc-basin': 'NO' }), 'basin name must begin with'],
    ['400 bad_header', 'an empty basin', plain({ 'svc-basin': '' }), 'basin name must not be empty'],
    ['400 bad_header', 'two basins', plain({ 's2-basin': 'other-basin' }), 'differ'],
    ['400 bad_header', 'a host of another basin', plain({ host: 'other-basin.localhost' }), '`other-basin`'],
    ['400 bad_header', 'a host too deep', without({ host: `x.${BASIN}.localhost` }), 'Missing header'],
    ['400 bad_header', 'a bad subdomain', without({ host: 'bad_name.localhost' }), 'Invalid header `host`'],
    ['404 basin_not_found', 'a missing basin', plain({ 'svc-basin': 'none' }), 'basin `none` not found'],
  ),
  ...at(`GET ${R}?seq_num=x`, ['400 bad_header', 'no basin and a bad query', without()]),
  ...at('PATCH /v1/basins/none', ['404 basin_not_found', 'a missing basin', json({})]),
  ...at('DELETE /v1/basins/none', ['404 basin_not_found', 'a missing basin', plain()]),

  ...at(
    `POST ${R}`,
    ['415 unsupported_encoding', 'an unknown coding', coded('br'), 'supported: gzip, zstd'],
    ['415 unsupported_encoding', 'two codings', coded('gzip, gzip')],
    ['400 bad_json', 'bad gzip', coded('gzip')],
    ['400 bad_json', 'bad zstd', coded('zstd')],
    ['400 bad_json', 'a bomb', coded('gzip', BOMB), 'gzip data decompresses to more than'],
    ['400 bad_proto', 'a bomb of protobuf', proto(BOMB, { 'content-encoding': 'gzip' })],
    ['400 bad_json', 'a body of 2 MiB and a byte', text(LARGE)],
    ['400 bad_proto', 'as many bytes of protobuf', proto(LARGE)],
    ['400 bad_json', 'no content type', untyped('{"records":[{}]}')],
    ['400 bad_json', 'an unknown content type', typed('text/plain', '{"records":[{}]}')],
    ['400 bad_json', 'no body', plain({ 'content-type': 'application/json' })],
    ['400 bad_json', 'broken JSON', text('{"records":[{}]')],
    ['400 bad_proto', 'broken protobuf', proto(Uint8Array.of(10, 200))],
    ['422 invalid', 'an empty batch', json({ records: [] })],
    ['422 invalid', 'a record over 1 MiB', record({ body: 'x'.repeat(1_048_569) })],
    ['422 invalid', 'bad base64', record({ body: '*' }, { 'svc-format': 'base64' })],
    ['422 invalid', 'an unknown command', record({ headers: [['', 'levitate']] })],
    ['400 bad_header', 'an unknown format', record({}, { 'svc-format': 'BASE64' })],
    ['400 bad_header', 'an unknown format and a bad body', text('{', NO_FORMAT)],
    ['400 bad_header', 'a long key', record({}, LONG_KEY)],
    ['400 bad_header', 'an empty key', record({}, { 's2-encryption-key': '' })],
    ['400 bad_header', 'a long key and a bad body', text('{', LONG_KEY)],
    ['412 ', 'a condition', json({ records: [{}], match_seq_num: 9 }), '{"seq_num_mismatch":0}'],
    ['412 ', 'a token', json({ records: [{}], fencing_token: 'x' }), '{"fencing_token_mismatch":""}'],
    ['412 ', 'a condition of protobuf', json({ records: [{}], match_seq_num: 9 }, PROTOBUF), 'mismatch'],
    ['400 bad_header', 'a broken configuration', configured('{')],
    ['400 bad_header', 'an unknown member', configured('{"retention":{}}'), 'unknown member `retention`'],
    ['422 invalid', 'a retention of 0', configured('{"retention_policy":{"age":0}}')],
  ),
  ...at(
    `POST ${MISSING}`,
    ['400 bad_json', 'a bad body', text('{')],
    ['422 invalid', 'an empty batch', json({ records: [] })],
    ['404 stream_not_found', 'a missing stream', record({}), 'set `create_stream_on_append`'],
    ['404 stream_not_found', 'a missing stream of a session', typed('s2s/proto', 'xxxx')],
  ),

  ...at(
    `GET ${R}`,
    ['416 ', 'the tail', plain(), '{"tail":{"seq_num":0,"timestamp":0}}'],
    ['416 ', 'the tail, in protobuf', plain(PROTOBUF), '"tail":'],
    ['400 bad_header', 'an unknown format', plain(NO_FORMAT)],
    ['400 bad_header', 'an unknown format of protobuf', plain({ ...NO_FORMAT, ...PROTOBUF })],
    ['400 bad_header', 'a long key', plain(LONG_KEY)],
    ['400 bad_header', 'a malformed id of an event', plain({ ...EVENTS, 'last-event-id': '1,2' })],
    ['400 bad_header', 'a bad configuration', plain({ 's2-stream-config': '{"storage_class":"gold"}' })],
  ),
  ...at(`GET ${R}?seq_num=9`, ['416 ', 'a session', plain(SESSION)], ['416 ', 'events', plain(EVENTS)]),
  ...at(`GET ${R}?seq_num=`, ['400 bad_query', 'an empty number', plain()]),
  ...at(
    `GET ${R}?count=x`,
    ['400 bad_query', 'an unknown format, too', plain(NO_FORMAT)],
    ['400 bad_query', 'a long key, too', plain(LONG_KEY)],
    ['400 bad_query', 'a session', plain(SESSION)],
  ),
  ...at(
    `GET ${R}?seq_num=0&timestamp=0`,
    ['422 invalid', 'two starts', plain()],
    ['422 invalid', 'two starts of events', plain(EVENTS)],
    ['400 bad_header', 'an unknown format, too', plain(NO_FORMAT)],
  ),
  ...at(`GET ${R}?timestamp=5&until=5`, ['422 invalid', 'an end before the start', plain()]),
  ...at(`GET ${MISSING}?seq_num=0&timestamp=0`, ['422 invalid', 'a missing stream, too', plain()]),
  ...at(
    `GET ${MISSING}`,
    ['404 stream_not_found', 'a missing stream', plain()],
    ['404 stream_not_found', 'events', plain(EVENTS)],
    ['404 stream_not_found', 'a session', plain(SESSION)],
  ),
  ...at(`GET ${MISSING}/tail`, ['404 stream_not_found', 'a missing stream', plain()]),

  ...at(
    'POST /v1/streams',
    ['400 bad_header', 'a long request token', json({ stream: 't' }, LONG_TOKEN)],
    ['400 bad_header', 'a long request token and no basin', without(LONG_TOKEN), 'token'],
    ['400 bad_header', 'a bad basin and a bad body', text('{', { 'svc-basin': 'NO' })],
    ['400 bad_json', 'a bad name', json({ stream: '..' })],
    ['400 bad_json', 'U+0000', json({ stream: 'a\0' })],
    ['409 resource_already_exists', 'a stream that exists', json({ stream: 's' }), 'stream `s` in basin'],
  ),
  ...at(
    'PUT /v1/streams/t',
    ['400 bad_json', 'an unknown class', json({ storage_class: 'gold' })],
    ['422 invalid', 'a retention of 0', json({ retention_policy: { age: 0 } })],
    ['400 bad_json', 'text', typed('text/plain', 'x')],
  ),
  ...at('PATCH /v1/streams/s', ['400 bad_json', 'no content type', untyped('{}')]),
  ...at('GET /v1/streams/none', ['404 stream_not_found', 'a missing stream', plain()]),
  ...at('PATCH /v1/streams/none', ['404 stream_not_found', 'a missing stream', json({})]),
  ...at('DELETE /v1/streams/none', ['404 stream_not_found', 'a missing stream', plain(), 'stream `none`']),
  ...at('GET /v1/streams?limit=1&limit=1', ['400 bad_query', 'a limit twice', plain()]),
  ...at(`GET /v1/streams?prefix=${LONG_NAME}`, ['400 bad_query', 'a long prefix', plain()]),
  ...at('GET /v1/streams?prefix=a%00', ['400 bad_query', 'U+0000', plain()]),

  ...at(
    'POST /v1/basins',
    ['400 bad_json', 'a name of 7 characters', json({ basin: 'seven-7' })],
    ['422 invalid', 'another scope', json({ basin: 'some-basin', scope: 'aws:elsewhere' })],
    ['400 bad_header', 'a long request token and a bad body', text('{', LONG_TOKEN)],
    ['409 resource_already_exists', 'a basin that exists', json({ basin: BASIN })],
  ),
  ...at(
    'PUT /v1/basins/some-basin',
    ['422 invalid', 'another scope', json({ scope: 'aws:elsewhere' })],
    [
      '422 invalid',
      'no such cipher',
      json({ config: { stream_cipher: 'aegis-256' } }),
      'headwater/aegis-256',
    ],
    ['400 bad_header', 'a long request token', json({}, LONG_TOKEN)],
  ),
  ...at('GET /v1/basins?prefix=UPPER', ['400 bad_query', 'a prefix in capitals', plain()]),
  ...at('GET /v1/basins?limit=', ['400 bad_query', 'an empty limit', plain()]),
  ...at(
    'PUT /v1/locations/default',
    ['422 invalid', 'an unknown location', json('aws:eu-north-1')],
    ['400 bad_json', 'a malformed location', json('a b')],
    ['400 bad_json', 'a long location', json('x'.repeat(65))],
    ['400 bad_json', 'no string', json({ name: 'x' })],
  ),

  ...at(
    'POST /v1/access-tokens',
    ['400 bad_json', 'no object', json([])],
    ['400 bad_json', 'no id', json({ scope: { ops: ['read'] } })],
    ['400 bad_json', 'an empty id', token({ id: '' })],
    ['400 bad_json', 'an id of one dot', token({ id: '.' })],
    ['400 bad_json', 'an id of 97 bytes', token({ id: `x${'é'.repeat(48)}` })],
    ['400 bad_json', 'a scope of null', token({ scope: null })],
    ['400 bad_json', 'an unknown operation', scope({ ops: ['levitate'] })],
    ['400 bad_json', 'an operation in capitals', scope({ ops: ['READ'] })],
    ['400 bad_json', 'operations that are no list', scope({ ops: 'read' })],
    ['400 bad_json', 'a group that is no object', scope({ op_groups: { stream: true } })],
    ['400 bad_json', 'a permission of 1', scope({ op_groups: { stream: { read: 1 } } })],
    ['400 bad_json', 'an empty set', scope({ streams: {} })],
    ['400 bad_json', 'a set of both kinds', scope({ streams: { exact: 'a', prefix: 'a' } })],
    ['400 bad_json', 'a basin in capitals', scope({ basins: { exact: 'Basin' } })],
    ['400 bad_json', 'a date that is none', expiring('tomorrow')],
    ['400 bad_json', 'a date without offset', expiring('2100-01-01T00:00:00')],
    ['400 bad_json', 'a day that is none', expiring('2100-02-30T00:00:00Z')],
    ['422 invalid', 'an expiry in the past', expiring('1970-01-01T00:00:00Z')],
    ['422 invalid', 'nothing that it permits', token({ scope: {} })],
    ['422 invalid', 'auto-prefix without streams', token({ auto_prefix_streams: true })],
  ),
  ...at(`GET /v1/access-tokens?prefix=${'x'.repeat(97)}`, ['400 bad_query', 'a long prefix', plain()]),
  ...at('DELETE /v1/access-tokens/none', ['404 access_token_not_found', 'a missing token', plain()]),
]

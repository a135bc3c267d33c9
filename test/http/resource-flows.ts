import { BASIN, type CallOptions } from './support.ts'

const BASIN_INFO = {
  name: 'some-basin',
  scope: 'aws:us-east-1',
  location: 'aws:us-east-1',
  state: 'active',
  created_at: '2025-01-01T00:00:00Z',
  deleted_at: null,
}
const BASIN_CONFIG = {
  default_stream_config: {
    storage_class: 'express',
    retention_policy: null,
    timestamping: null,
    delete_on_empty: null,
  },
  stream_cipher: null,
  create_stream_on_append: false,
  create_stream_on_read: false,
}
const STREAM_INFO = { name: 't', created_at: '2025-01-01T00:00:00Z', deleted_at: null, cipher: null }
const STREAM_CONFIG = {
  storage_class: 'express',
  retention_policy: { age: 604800 },
  timestamping: { mode: 'client-prefer', uncapped: false },
  delete_on_empty: { min_age_secs: 0 },
}
const SOME = '/v1/basins/some-basin'
export const T = '/v1/streams/t'
const HERE = { name: 'aws:us-east-1', is_private: false }
export const json = (value: unknown, headers: Readonly<Record<string, string>> = {}): CallOptions => ({
  json: value,
  headers,
})
export const asked = (token: string) => ({ 'svc-request-token': token })
const LONG_TOKEN = asked('x'.repeat(37))
const AGE = { retention_policy: { age: 60 } }
const AGED = { ...STREAM_CONFIG, ...AGE }
const KEPT = { retention_policy: { infinite: {} }, timestamping: { mode: 'arrival' } }
const AS_KEPT = { ...STREAM_CONFIG, ...KEPT, timestamping: { mode: 'arrival', uncapped: false } }
const READ = { create_stream_on_read: true }
const AGED_BASIN = { ...BASIN_CONFIG, ...READ }

/** A request, and the status and body of its reply, with the result of a provision. */
type Step = readonly [request: string, options: CallOptions, status: number, body: unknown, result?: string]

/** Requests that follow each other on one engine. */
export const FLOWS: Readonly<Record<string, readonly Step[]>> = {
  'a basin is created by POST, once for a request token': [
    ['POST /v1/basins', json({ basin: 'some-basin' }, asked('')), 201, BASIN_INFO, 'created'],
    ['POST /v1/basins', json({ basin: 'some-basin' }, asked('')), 200, BASIN_INFO, 'noop'],
    ['POST /v1/basins', json({ basin: 'some-basin' }, asked('u')), 409, { code: 'resource_already_exists' }],
    ['POST /v1/basins', json({ basin: 'some-basin' }), 409, { code: 'resource_already_exists' }],
    [
      'POST /v1/basins',
      json({ basin: 'some-basin', config: READ }, asked('')),
      409,
      { code: 'resource_already_exists' },
    ],
  ],
  'a basin is created, kept and changed by PUT': [
    [`PUT ${SOME}`, {}, 201, BASIN_INFO, 'created'],
    [`PUT ${SOME}`, {}, 200, BASIN_INFO, 'noop'],
    [`PUT ${SOME}`, json({ config: { create_stream_on_append: true } }), 200, BASIN_INFO, 'updated'],
    [`PUT ${SOME}`, json(null), 200, BASIN_INFO, 'updated'],
    [
      'PUT /v1/basins/b',
      json({ scope: 'aws:us-east-1' }, asked('x'.repeat(36))),
      201,
      { name: 'b' },
      'created',
    ],
    // Without a content type, a body means nothing.
    ['PUT /v1/basins/c', { body: Buffer.from('{"config":{}}') }, 201, { name: 'c' }, 'created'],
    ['GET /v1/basins/c', {}, 200, BASIN_CONFIG],
    ['PUT /v1/basins/d', { headers: { 'content-type': 'application/json' } }, 201, { name: 'd' }, 'created'],
  ],
  'PATCH sets, keeps and clears what a basin has': [
    [`PUT ${SOME}`, {}, 201, BASIN_INFO, 'created'],
    [`GET ${SOME}`, {}, 200, BASIN_CONFIG],
    [
      `PATCH ${SOME}`,
      json({ ...READ, default_stream_config: AGE }),
      200,
      { ...AGED_BASIN, default_stream_config: { ...BASIN_CONFIG.default_stream_config, ...AGE } },
    ],
    [`PATCH ${SOME}`, json({ default_stream_config: null, create_stream_on_read: null }), 200, AGED_BASIN],
  ],
  'basins are listed in order, page by page': [
    ...['p-c', 'p-a', 'other', 'p-b'].map(
      (name): Step => [`PUT /v1/basins/${name}`, {}, 201, { name }, 'created'],
    ),
    [
      'GET /v1/basins?limit=0',
      {},
      200,
      { basins: ['other', 'p-a', 'p-b', 'p-c'].map((name) => ({ name })), has_more: false },
    ],
    [
      'GET /v1/basins?prefix=p-&limit=2',
      {},
      200,
      { basins: [{ name: 'p-a' }, { name: 'p-b' }], has_more: true },
    ],
    ['GET /v1/basins?prefix=p-&start_after=p-b&x=1', {}, 200, { basins: [{ name: 'p-c' }], has_more: false }],
  ],
  'a stream is created by POST, once for a request token': [
    [`PUT /v1/basins/${BASIN}`, {}, 201, {}, 'created'],
    ['POST /v1/streams', json({ stream: 't' }, asked('token')), 201, STREAM_INFO, 'created'],
    ['POST /v1/streams', json({ stream: 't' }, asked('token')), 201, STREAM_INFO, 'noop'],
    ['POST /v1/streams', json({ stream: 't' }), 409, { code: 'resource_already_exists' }],
  ],
  'a stream is created, kept and reset by PUT, which reads no request token': [
    [`PUT /v1/basins/${BASIN}`, {}, 201, {}, 'created'],
    [`PUT ${T}`, json(AGE, LONG_TOKEN), 201, STREAM_INFO, 'created'],
    [`PUT ${T}`, json(AGE, LONG_TOKEN), 200, STREAM_INFO, 'noop'],
    [`GET ${T}`, {}, 200, AGED],
    [`PUT ${T}`, { headers: LONG_TOKEN }, 200, STREAM_INFO, 'updated'],
    [`GET ${T}`, {}, 200, STREAM_CONFIG],
  ],
  'PATCH sets, keeps and clears what a stream has': [
    [`PUT /v1/basins/${BASIN}`, {}, 201, {}, 'created'],
    [`PUT ${T}`, {}, 201, STREAM_INFO, 'created'],
    [`PATCH ${T}`, json(KEPT), 200, AS_KEPT],
    [`PATCH ${T}`, json({}), 200, AS_KEPT],
    [`PATCH ${T}`, json({ retention_policy: null, timestamping: null }), 200, STREAM_CONFIG],
  ],
  'a stream is deleted once': [
    [`PUT /v1/basins/${BASIN}`, {}, 201, {}, 'created'],
    [`PUT ${T}`, {}, 201, STREAM_INFO, 'created'],
    [`DELETE ${T}`, {}, 202, undefined],
    [`DELETE ${T}`, {}, 404, { code: 'stream_not_found' }],
    [`GET ${T}/records/tail`, {}, 404, { code: 'stream_not_found' }],
  ],
  'streams are listed in the order of UTF-8, with names that are encoded in paths': [
    [`PUT /v1/basins/${BASIN}`, {}, 201, {}, 'created'],
    ...['b%2F2', 'a', 'b%2F%F0%9F%98%80', 'b%2F%EF%BD%9E'].map(
      (name): Step => [`PUT /v1/streams/${name}`, {}, 201, { name: decodeURIComponent(name) }, 'created'],
    ),
    [
      'GET /v1/streams?prefix=b%2F&start_after=b%2F2',
      {},
      200,
      { streams: [{ name: 'b/\uff5e' }, { name: 'b/\u{1f600}' }], has_more: false },
    ],
    ['GET /v1/streams?limit=1&start_after=a%00', {}, 200, { streams: [{ name: 'b/2' }], has_more: true }],
    [`PUT /v1/streams/${'%C3%A9'.repeat(256)}`, {}, 201, { name: 'é'.repeat(256) }, 'created'],
  ],
  'there is one location': [
    ['GET /v1/locations', {}, 200, [HERE]],
    ['GET /v1/locations/default', {}, 200, HERE],
    ['PUT /v1/locations/default', json('aws:us-east-1'), 200, HERE],
  ],
}

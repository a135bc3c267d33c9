import type { Place } from './evidence.ts'
import { BASIN, KEYS, SEALED_TEXTS, STREAMS, type Vault } from './vault.ts'

type Headers = Readonly<Record<string, string>>

interface Init {
  readonly method?: string
  readonly headers?: Headers
  readonly body?: string
}

const JSON_TYPE = { 'content-type': 'application/json' }
const RECORDS = `/v1/streams/${STREAMS[0]}/records`
const ONE = '?seq_num=0&count=1'
const RIGHT_KEY = KEYS['the right key']

const bearer = (token: string | undefined): Headers =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** Sends a request and adds the response to the evidence. Resolves to the status; 0 without a response. */
async function request(
  { server, evidence }: Vault,
  place: Place | undefined,
  source: string,
  path: string,
  init: Init = {},
): Promise<number> {
  try {
    const response = await fetch(`${server.url}${path}`, init)
    const body = new Uint8Array(await response.arrayBuffer())
    if (place !== undefined) {
      evidence.add(place, source, `${response.status} ${response.statusText}`)
      evidence.add(place, source, [...response.headers].flat().join('\n'))
      evidence.add(place, source, body)
    }
    return response.status
  } catch {
    // Some of these methods and headers cannot be sent by a client.
    return 0
  }
}

/** Requests that are wrong in some way, and those of every caller. Resolves to the statuses that occurred. */
export async function sendRequests(vault: Vault): Promise<Set<number>> {
  const statuses = new Set<number>()
  const send = async (...call: Parameters<typeof request> extends [Vault, ...infer Rest] ? Rest : never) =>
    void statuses.add(await request(vault, ...call))
  const root = vault.tokens['the root token']
  const callers = { anonymous: undefined, ...vault.tokens }

  for (const [name, secret] of Object.entries({ 'the root token': root, 'the right key': RIGHT_KEY })) {
    for (const { method, path, headers, body, isName } of misplaced(secret)) {
      for (const token of [undefined, root]) {
        // A permitted caller is told which name does not exist, and gets records with the right key.
        const hasKey = secret === RIGHT_KEY && Object.keys(headers).some((name) => name.endsWith('-key'))
        const permitted = isName ? undefined : hasKey ? 'answers with records' : 'answers'
        const place = token === undefined ? 'answers' : permitted
        const source = `${name}, ${token === undefined ? 'anonymous' : 'as root'}: ${method} ${path}`
        const init = {
          method,
          headers: { ...bearer(token), ...headers },
          ...(body !== undefined && { body }),
        }
        await send(place, source, path, init)
      }
    }
  }
  for (const [name, token] of Object.entries(vault.tokens)) {
    for (const authorization of malformedAuthorizations(token)) {
      await send('answers', `${name}: ${authorization}`, '/v1/basins', { headers: { authorization } })
    }
  }

  // Every caller with every key, in every form of reading and appending.
  const forms: readonly Headers[] = [
    {},
    { accept: 'text/event-stream' },
    { 'content-type': 'svcs/proto' },
    { accept: 'application/protobuf' },
  ]
  for (const [caller, token] of Object.entries(callers)) {
    const mayRead = [root, vault.tokens['an issued token']].includes(token ?? '')
    const inBasin = { ...bearer(token), 'svc-basin': BASIN }
    for (const stream of STREAMS) {
      for (const [name, key] of Object.entries({ ...KEYS, none: undefined })) {
        const headers = { ...inBasin, ...(key !== undefined && { 'svc-encryption-key': key }) }
        const path = `/v1/streams/${stream}/records`
        const isReadable = mayRead && (key === RIGHT_KEY || stream === 'plain')
        for (const form of forms) {
          const source = `${caller} reads ${stream} with ${name} as ${JSON.stringify(form)}`
          const place = isReadable ? 'answers with records' : 'answers'
          await send(place, source, `${path}${ONE}`, { headers: { ...headers, ...form } })
        }
        const body = '{"records":[{"body":"x"}],"match_seq_num":99}'
        const init = { method: 'POST', headers: { ...headers, ...JSON_TYPE }, body }
        await send('answers', `${caller} appends with ${name}`, path, init)
      }
    }
    for (const path of [
      ...['/v1/access-tokens', '/v1/basins', '/v1/locations', '/metrics', '/health'],
      ...['/v1/streams', `/v1/streams/${STREAMS[0]}`, `${RECORDS}/tail`],
    ]) {
      await send('answers', `${caller} gets ${path}`, path, { headers: inBasin })
    }
  }
  return statuses
}

/** The requests that need the storage, while it fails. */
export async function sendWhileFailing(vault: Vault): Promise<void> {
  for (const [who, token] of Object.entries(vault.tokens).slice(0, 2)) {
    for (const key of [RIGHT_KEY, KEYS['a wrong key']]) {
      const headers = { ...bearer(token), ...JSON_TYPE, 'svc-basin': BASIN, 'svc-encryption-key': key }
      const ask = (method: string, path: string, more: Headers = {}, body?: string) =>
        request(vault, 'answers', `${who} while the storage fails: ${method} ${path}`, path, {
          method,
          headers: { ...headers, ...more },
          ...(body !== undefined && { body }),
        })
      await ask('GET', '/v1/basins')
      await ask('GET', '/v1/access-tokens')
      await ask('POST', '/v1/access-tokens', {}, '{"id":"fine","scope":{"ops":["read"]}}')
      await ask('DELETE', '/v1/access-tokens/nobody')
      const body = SEALED_TEXTS['a sealed body']
      await ask('POST', RECORDS, {}, JSON.stringify({ records: [{ body }] }))
      if (key !== RIGHT_KEY) {
        await ask('GET', `${RECORDS}${ONE}`)
        await ask('GET', `${RECORDS}${ONE}`, { accept: 'text/event-stream' })
      }
      await ask('GET', '/v1/streams/nothing/records/tail')
    }
  }
}

interface Misplaced {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly body?: string | undefined
  /** Whether the secret is taken for a name. */
  readonly isName?: boolean
}

const SPAN = '?set=storage&start=0&end=60'
const POSTED = '{"records":[{"body":"","headers":[]},{"body":1}]}'

/** Requests in whose path a secret, for which `@` stands, is a name. */
const NAMED = [
  ...['GET /v1/streams/@', 'GET /v1/streams/@/records', 'GET /v1/streams/@/records/tail'],
  ...[`GET /v1/metrics/@${SPAN}`, `GET /v1/metrics/${BASIN}/@${SPAN}`, 'GET /v1/basins/@'],
  ...['DELETE /v1/access-tokens/@', 'DELETE /v1/streams/@'],
]
/** Requests that have it elsewhere in their address. */
const ADDRESSED = [
  ...['GET /@', 'GET /v1/@/streams', `GET ${RECORDS}?seq_num=@&seq_num=@`, `GET ${RECORDS}?@=1&@=2`],
  ...['access_token', 'token', 'key', 'limit', 'include_deleted', 'prefix', 'start_after'].flatMap((name) =>
    ['basins', 'streams', 'access-tokens'].map((path) => `GET /v1/${path}?${name}=@`),
  ),
  ...['seq_num', 'timestamp', 'count', 'until', 'wait', 'clamp', 'key'].map(
    (name) => `GET ${RECORDS}?${name}=@`,
  ),
  `GET /v1/metrics/${BASIN}?set=@&start=0&end=1`,
  `GET /v1/metrics/${BASIN}?set=storage&start=@&end=1&interval=@`,
]
const HEADER_NAMES = [
  ...['svc-basin', 's2-basin', 'svc-format', 'svc-encryption-key', 's2-encryption-key'],
  ...['svc-stream-config', 'accept', 'content-type', 'content-encoding', 'last-event-id', 'cookie'],
]
/** JSON in which `@` stands for it as a string. */
const BODIES = [
  ...['@', '{@', '{@:1,@:2}', '{"records":[{"body":"x","timestamp":@}]}'],
  '{"records":[{"body":"x","headers":[["",@]]}]}',
  '{"records":[{"body":"x"}],"match_seq_num":@}',
  '{"records":[{"body":"x"}],"fencing_token":@}',
  '{"config":{"stream_cipher":@}}',
  '{"id":"x","scope":{"ops":[@]}}',
  '{"id":"x","expires_at":@,"scope":{"ops":["read"]}}',
  '{"id":"x","scope":{"streams":{@:""}}}',
]

/** A secret in all places of requests where it may appear by mistake. */
function misplaced(secret: string): Misplaced[] {
  const inJson = JSON.stringify(secret)
  const sent = (method: string, path: string, headers: Headers = {}, body?: string): Misplaced => {
    const basin = path.startsWith('/v1/streams') ? { 'svc-basin': BASIN } : {}
    return { method, path, headers: { ...basin, ...headers }, body }
  }
  const addressed = (line: string) => {
    const [method, path] = line.split(' ') as [string, string]
    return sent(method, path.replaceAll('@', encodeURIComponent(secret)))
  }
  const bodies = [secret, ...BODIES.map((body) => body.replaceAll('@', inJson))]
  return [
    ...NAMED.map((line) => ({ ...addressed(line), isName: true })),
    ...ADDRESSED.map(addressed),
    sent(secret.replace(/[^A-Za-z]/g, '').slice(0, 40), '/v1/basins'),
    ...HEADER_NAMES.flatMap((name) => [
      sent('GET', `${RECORDS}?seq_num=0`, { ...JSON_TYPE, [name]: secret }),
      sent('POST', RECORDS, { ...JSON_TYPE, [name]: secret }, POSTED),
    ]),
    sent('PUT', `/v1/basins/${BASIN}`, { 'svc-request-token': `${secret}${secret}` }),
    sent('POST', RECORDS, { ...JSON_TYPE, 'svc-stream-config': `{"x":${inJson}}` }, '{}'),
    ...bodies.flatMap((body) => [
      sent('POST', RECORDS, JSON_TYPE, body),
      sent('POST', RECORDS, { ...JSON_TYPE, 'svc-format': 'base64' }, body),
      sent('POST', '/v1/access-tokens', JSON_TYPE, body),
      sent('PUT', `/v1/basins/${BASIN}`, JSON_TYPE, body),
      sent('PATCH', `/v1/streams/${STREAMS[0]}`, JSON_TYPE, body),
      { ...sent('PUT', '/v1/locations/default', JSON_TYPE, body), isName: body === inJson },
    ]),
    ...['application/protobuf', 'svcs/proto', 's2s/proto'].flatMap((type) => [
      sent('POST', RECORDS, { 'content-type': type }, secret),
      sent('POST', RECORDS, { 'content-type': type, 'content-encoding': 'gzip' }, secret),
    ]),
  ]
}

/** Headers that carry a token in a wrong form. */
function malformedAuthorizations(token: string): string[] {
  return [
    ...[token, `Basic ${token}`, `Basic ${btoa(`user:${token}`)}`],
    ...[`Bearer ${token} ${token}`, `Bearer ${token}x`, `Bearer ${token.slice(1)}`],
    ...[`Bearer ${token.slice(0, -4)}`, `Bearer ${token.toLowerCase()}`],
    `Digest username="${token}", response="${token}"`,
  ]
}

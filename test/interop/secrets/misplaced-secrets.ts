import type { Evidence, Place } from './evidence.ts'
import { malformedAuthorizations, misplacedSecrets } from './odd-requests.ts'

/** The tokens, keys and texts to send to a service. */
export interface Material {
  readonly basin: string
  /** Streams with and without a cipher. */
  readonly streams: readonly string[]
  /** Tokens by kind. The first two permit everything. */
  readonly tokens: Readonly<Record<string, string>>
  /** Keys in base64. The first is the correct one. */
  readonly keys: Readonly<Record<string, string>>
}

type Init = Pick<RequestInit, 'method' | 'headers' | 'body'>

/** Sends requests and adds all responses to the evidence. */
export class RecordingClient {
  readonly #url: string
  readonly #evidence: Evidence

  constructor(url: string, evidence: Evidence) {
    this.#url = url
    this.#evidence = evidence
  }

  /** Resolves to the status; 0 without a response. */
  async request(place: Place | undefined, source: string, path: string, init: Init = {}): Promise<number> {
    try {
      const response = await fetch(`${this.#url}${path}`, init)
      const body = new Uint8Array(await response.arrayBuffer())
      if (place !== undefined) {
        this.#evidence.add(place, source, `${response.status} ${response.statusText}`)
        this.#evidence.add(place, source, [...response.headers].flat().join('\n'))
        this.#evidence.add(place, source, body)
      }
      return response.status
    } catch {
      // Some of these methods and headers cannot be sent by a client.
      return 0
    }
  }
}

/** Sends requests that are wrong in some way. Resolves to the number of responses by status. */
export async function sendMisplacedSecrets(
  client: RecordingClient,
  material: Material,
): Promise<Map<number, number>> {
  const { basin, streams, tokens, keys } = material
  const statuses = new Map<number, number>()
  const count = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1)
  const [everything, issued] = Object.values(tokens)
  const [rightKey] = Object.values(keys)
  const callers: Readonly<Record<string, string | undefined>> = {
    anonymous: undefined,
    ...Object.fromEntries(Object.entries(tokens).slice(0, 3)),
  }
  const bearer = (token: string | undefined): Record<string, string> =>
    token === undefined ? {} : { authorization: `Bearer ${token}` }

  // A secret in the wrong place. A caller without permissions gets the same response to everything.
  const secrets = [...Object.entries(tokens).slice(0, 1), ...Object.entries(keys).slice(0, 1)]
  for (const [name, secret] of secrets) {
    for (const request of misplacedSecrets(secret, basin, streams[0]!)) {
      for (const token of [undefined, everything]) {
        const headers = { ...bearer(token), ...request.headers }
        const isNamed = request.isName && token !== undefined
        const isInPlace = Object.keys(request.headers).some((name) => name.endsWith('-encryption-key'))
        const returnsRecords = token !== undefined && secret === rightKey && isInPlace
        const place = isNamed ? undefined : returnsRecords ? 'answers with records' : 'answers'
        const caller = token === undefined ? 'anonymous' : 'root'
        const { method, path, body } = request
        const init = { method, headers, ...(body !== undefined && { body }) }
        count(await client.request(place, `${name} by ${caller}: ${request.what}`, path, init))
      }
    }
  }
  for (const [name, token] of Object.entries(tokens)) {
    for (const [index, authorization] of malformedAuthorizations(token).entries()) {
      const source = `authorization ${index} of ${name}`
      count(await client.request('answers', source, '/v1/basins', { headers: { authorization } }))
    }
  }

  // Every caller with every key, in every form of reading and appending.
  const forms: readonly Record<string, string>[] = [
    {},
    { accept: 'text/event-stream' },
    { 'content-type': 'svcs/proto' },
    { accept: 'application/protobuf' },
  ]
  for (const [caller, token] of Object.entries(callers)) {
    for (const stream of streams) {
      for (const [key, encryptionKey] of Object.entries({ ...keys, none: undefined })) {
        const headers = {
          ...bearer(token),
          'svc-basin': basin,
          ...(encryptionKey !== undefined && { 'svc-encryption-key': encryptionKey }),
        }
        for (const form of forms) {
          const source = `${caller} reads ${stream} with ${key} as ${JSON.stringify(form)}`
          const path = `/v1/streams/${stream}/records?seq_num=0&count=1`
          // A permitted reader gets records: with the correct key, and of a stream without a cipher.
          const mayRead = token === everything || token === issued
          const returnsRecords = mayRead && (encryptionKey === rightKey || stream === 'plain')
          const place = returnsRecords ? 'answers with records' : 'answers'
          count(await client.request(place, source, path, { headers: { ...headers, ...form } }))
        }
        const body = '{"records":[{"body":"x"}],"match_seq_num":99}'
        const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body }
        count(
          await client.request(
            'answers',
            `${caller} appends with ${key}`,
            `/v1/streams/${stream}/records`,
            init,
          ),
        )
      }
    }
    for (const path of ['/v1/access-tokens', '/v1/basins', '/v1/locations', '/metrics', '/health']) {
      count(await client.request('answers', `${caller} gets ${path}`, path, { headers: bearer(token) }))
    }
    for (const path of [
      '/v1/streams',
      `/v1/streams/${streams[0]}`,
      `/v1/streams/${streams[0]}/records/tail`,
    ]) {
      const headers = { ...bearer(token), 'svc-basin': basin }
      count(await client.request('answers', `${caller} gets ${path}`, path, { headers }))
    }
  }
  return statuses
}

import { vi } from 'vitest'
import { trimRecord } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import { outcomeOfCode } from '../linearizability/clients/http-client.ts'
import { NOT_MADE, UNKNOWN } from '../linearizability/operations.ts'
import { type Life, LifeHistory } from './check-lives.ts'

const MODES = ['client-prefer', 'arrival', 'client-require'] as const
const SHORT_AGE_SECONDS = 1
const CALL_MS = 30_000

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown> | undefined
}

interface Position {
  readonly seq_num: number
}

/** A stream that one caller deletes, creates and configures while others append, trim and read. */
export class LivedStream {
  readonly history = new LifeHistory()
  /** The calls that have ended, whatever their outcome. */
  calls = 0
  readonly #basin: string
  readonly #stream: string
  #tail = 0

  constructor(basin: string, stream: string) {
    this.#basin = basin
    this.#stream = stream
  }

  /** Makes a random call. `name` is in the records that it appends. */
  async perform(prng: Prng, url: string, name: string): Promise<void> {
    const choice = prng.next()
    if (choice < 0.6)
      await this.#append(
        url,
        Array.from({ length: 1 + prng.below(3) }, (_, i) => `${name}-${i}`),
      )
    else if (choice < 0.68) await this.#trim(url, prng.below(this.#tail + 1))
    else await this.#read(url, prng.chance(0.5) ? 0 : prng.below(this.#tail + 1))
    this.calls++
  }

  async configure(prng: Prng, url: string): Promise<void> {
    const mode = prng.pick(MODES)
    const retention = prng.chance(0.5) ? { age: 3_600 } : { infinite: {} }
    const body = {
      timestamping: { mode },
      ...(this.#life.ageMs === undefined && { retention_policy: retention }),
    }
    const from = performance.now()
    // Known before it can have an effect.
    const change = { from, to: Number.POSITIVE_INFINITY, requiresTimestamp: mode === 'client-require' }
    const at = this.history.changes.push({ ...change, isAcknowledged: false }) - 1
    const answer = await this.#call(url, 'PATCH', `/streams/${this.#stream}`, body)
    const isAcknowledged = answer?.status === 200
    this.history.changes[at] = { ...change, to: performance.now(), isAcknowledged }
  }

  /** Creates the basin, if it does not exist, and the stream. */
  async create(prng: Prng, url: () => Promise<string>): Promise<void> {
    const from = performance.now()
    const ageMs = prng.chance(0.3) ? SHORT_AGE_SECONDS * 1_000 : undefined
    const retention = ageMs === undefined ? { infinite: {} } : { age: SHORT_AGE_SECONDS }
    await this.#repeat(url, 'POST', '/basins', { basin: this.#basin }, 'resource_already_exists')
    const stream = { stream: this.#stream, config: { retention_policy: retention } }
    await this.#repeat(url, 'POST', '/streams', stream, 'resource_already_exists')
    this.#tail = 0
    this.history.lives.push({ created: { from, to: performance.now() }, ageMs })
  }

  /** Deletes the stream, or its basin with it. */
  async delete(url: () => Promise<string>, what: 'stream' | 'basin'): Promise<void> {
    const life = this.#life
    const from = performance.now()
    life.deleted = { from, to: Number.POSITIVE_INFINITY }
    if (what === 'stream')
      await this.#repeat(url, 'DELETE', `/streams/${this.#stream}`, undefined, 'stream_not_found')
    else await this.#repeat(url, 'DELETE', `/basins/${this.#basin}`, undefined, 'basin_not_found')
    life.deleted = { from, to: performance.now() }
  }

  /** Reads everything. Resolves to whether all of it was read. */
  async readAll(url: string): Promise<boolean> {
    for (let at = 0; ; ) {
      const next = await this.#read(url, at)
      if (next === undefined) return false
      if (next <= at) return true
      at = next
    }
  }

  get #life(): Life {
    return this.history.lives.at(-1)!
  }

  async #append(url: string, bodies: readonly string[]): Promise<void> {
    const from = performance.now()
    const append = { from, to: Number.POSITIVE_INFINITY, bodies, outcome: UNKNOWN }
    // A read may return the records before the append has ended.
    const at = this.history.appends.push(append) - 1
    const answer = await this.#records(
      url,
      bodies.map((body) => ({ body })),
    )
    const to = performance.now()
    if (answer?.status === 200) {
      const { start, end, tail } = answer.body as unknown as Record<'start' | 'end' | 'tail', Position>
      const outcome = {
        kind: 'appended',
        start: start.seq_num,
        end: end.seq_num,
        tail: tail.seq_num,
      } as const
      this.history.appends[at] = { ...append, to, outcome }
      this.#tail = Math.max(this.#tail, end.seq_num)
      return
    }
    const isMissing = answer?.status === 404
    const outcome = isMissing ? NOT_MADE : answer && outcomeOfCode(answer.body?.code as string)
    this.history.appends[at] = { ...append, to, outcome: outcome ?? UNKNOWN }
  }

  async #trim(url: string, point: number): Promise<void> {
    const trim = { from: performance.now(), to: Number.POSITIVE_INFINITY, point }
    const at = this.history.trims.push({ ...trim, isAcknowledged: false }) - 1
    const body = Buffer.from(trimRecord(point).body).toString('base64')
    const record = { headers: [['', Buffer.from('trim').toString('base64')]], body }
    const answer = await this.#records(url, [record], { 'svc-format': 'base64' })
    this.history.trims[at] = { ...trim, to: performance.now(), isAcknowledged: answer?.status === 200 }
  }

  #records(url: string, records: readonly object[], headers: Record<string, string> = {}) {
    return this.#call(url, 'POST', `/streams/${this.#stream}/records`, { records }, headers)
  }

  /** Resolves to where to read on; undefined if the call failed. */
  async #read(url: string, at: number): Promise<number | undefined> {
    const from = performance.now()
    const answer = await this.#call(url, 'GET', `/streams/${this.#stream}/records?seq_num=${at}`)
    const to = performance.now()
    if (answer?.status === 416) {
      const tail = (answer.body as unknown as { tail: Position }).tail.seq_num
      this.history.pages.push({ from, to, at, records: [], tail })
      return tail
    }
    if (answer?.status !== 200) return undefined
    const { records } = answer.body as unknown as {
      records: readonly (Position & { headers?: readonly unknown[]; body?: string })[]
    }
    this.history.pages.push({
      from,
      to,
      at,
      tail: undefined,
      records: records.map(({ seq_num, headers = [], body = '' }) => ({
        seqNum: seq_num,
        body,
        isCommand: headers.length > 0,
      })),
    })
    return (records.at(-1)?.seq_num ?? at - 1) + 1
  }

  /** Repeats a call until it has succeeded, or the code shows that an earlier attempt has. */
  async #repeat(
    url: () => Promise<string>,
    method: string,
    path: string,
    body: object | undefined,
    done: string,
  ): Promise<void> {
    await vi.waitUntil(async () => {
      const answer = await this.#call(await url(), method, path, body)
      return answer !== undefined && (answer.status < 300 || answer.body?.code === done)
    })
  }

  /** Resolves to undefined without a complete response: the outcome is unknown. */
  async #call(
    url: string,
    method: string,
    path: string,
    body?: object,
    more: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    const headers = {
      ...(path.startsWith('/streams') && { 'svc-basin': this.#basin }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...more,
    }
    try {
      const response = await fetch(`${url}/v1${path}`, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(CALL_MS),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    } catch {
      return undefined
    }
  }
}

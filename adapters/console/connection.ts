import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import type { HeaderPrefix } from '../../src/wire/headers.ts'
import { ClientCore } from '../client/core.ts'
import type { Headwater } from '../client/index.ts'
import { settingsOf } from '../client/options.ts'
import { RemoteHeadwater } from '../client/remote.ts'

/** The server that requests are sent to. */
interface ConnectionTarget {
  /** Without a slash at the end. */
  readonly url: string
  readonly headerPrefix: HeaderPrefix
}

/** A stream with its encryption key, which is empty if there is none. */
export interface StreamTarget {
  readonly basin: string
  readonly stream: string
  readonly encryptionKey: string
  readonly handle: Stream
}

/** How long after a failure the server is asked again. */
const RETRY_MS = 2000

/** The client of a server, with the access token of the console. */
export class Connection {
  readonly target: ConnectionTarget
  readonly isAuthorized: boolean
  readonly hw: Headwater
  /** The encryption keys that were entered, by basin and stream. They are kept nowhere else. */
  readonly encryptionKeys = new Map<string, string>()
  /** Records to begin the next append to a stream with, by basin and stream. */
  readonly drafts = new Map<string, SequencedRecord>()
  /** Runs for each request that the server rejects with 401. */
  onUnauthorized: () => void = () => {}
  /** Runs when the server cannot be reached, and with undefined when it answers. */
  onLoss: (loss: Error | undefined) => void = () => {}
  #nextAttempt: ReturnType<typeof setTimeout> | undefined
  readonly #fetch: (request: Request) => Promise<Response>
  readonly #token: string | undefined

  /** Throws `invalid` for an invalid target. The token is kept here only; see `access.tsx`. */
  constructor(fetch: (request: Request) => Promise<Response>, target: ConnectionTarget, token?: string) {
    this.#fetch = fetch
    this.#token = token
    this.target = target
    this.isAuthorized = token !== undefined
    const settings = settingsOf({
      ...target,
      token,
      autoCreate: false,
      defaultRetention: 'server',
      fetch: (request) => this.#send(request),
      // The user can try again, and would have to wait for more attempts.
      retries: 1,
      resumes: 1,
    })
    // Every server sends events, never compressed: the page has no codecs.
    this.hw = new RemoteHeadwater(new ClientCore({ ...settings, readsEvents: true }))
  }

  /**
   * Reads JSON, or else text, from a path of headwater's own, beside `/v1`. Rejects with `unsupported` if the
   * server has none.
   */
  async own<Value>(path: string, decode: (value: unknown) => Value, signal?: AbortSignal): Promise<Value> {
    const headers: HeadersInit = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const request = new Request(`${this.target.url}${path}`, { headers, signal: signal ?? null })
    const response = await this.#reach(request)
    const isJson = response.headers.get('content-type')?.includes('json')
    const value: unknown = isJson ? await response.json() : await response.text()
    // The page of another server is not an answer.
    if (response.ok && !response.headers.get('content-type')?.includes('html')) return decode(value)
    const { code = 'unsupported', message = 'the server does not have this' } =
      value as Partial<HeadwaterError>
    throw new HeadwaterError(code, message)
  }

  /** Aborts all requests. */
  close(): void {
    clearTimeout(this.#nextAttempt)
    void this.hw.close()
  }

  async #send(request: Request): Promise<Response> {
    const response = await this.#reach(request)
    if (response.status === 401) this.onUnauthorized()
    return response
  }

  async #reach(request: Request): Promise<Response> {
    const send = this.#fetch
    try {
      const response = await send(request)
      this.#report(undefined)
      return response
    } catch (error) {
      if (!request.signal.aborted) this.#report(error as Error)
      throw error
    }
  }

  /** Reports that the server cannot be reached, and asks it until it answers. */
  #report(loss: Error | undefined): void {
    clearTimeout(this.#nextAttempt)
    const ask = () => this.hw.listBasins({ limit: 1 }).catch(() => {})
    this.#nextAttempt = loss && setTimeout(ask, RETRY_MS)
    this.onLoss(loss)
  }
}

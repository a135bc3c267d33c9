import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { AwsClient } from 'aws4fetch'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { trackExternalWork } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { S3Credentials } from './credentials.ts'

/** Where a bucket is. */
export interface S3Location {
  readonly bucket: string
  /** Precedes all keys, with a `/` at its end; may be empty. */
  readonly prefix: string
  /** Undefined for AWS. */
  readonly endpoint: string | undefined
  readonly region: string
  /** Resolves to the credentials. Called again once the bucket no longer accepts them. */
  credentials(): Promise<S3Credentials>
  readonly fetch: typeof fetch
}

/** How long a request may take, in milliseconds: this, and longer for what it sends or asks for. */
const ATTEMPT_MS_MAX = 30_000
/** A slower connection counts as broken, in bytes a millisecond. */
const RATE_MIN = 100
/** How long requests are repeated: a server may be away for a minute. */
export const CALL_MS_MAX = 120_000
const BACKOFF_MS = { first: 50, max: 5_000 }
/** Refusals of a request that was damaged on its way. */
const TRANSIENT_CODES = new Set(['RequestTimeout', 'IncompleteBody', 'XAmzContentSHA256Mismatch'])
/** Refusals of credentials that have expired or were replaced. */
const OLD_CREDENTIALS_CODES = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'SignatureDoesNotMatch',
])
/** The bucket does not know the request. */
const NOT_IMPLEMENTED = 501
/** More of a small object is not read. */
const SMALL_BYTES_MAX = 4096

interface S3Request {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** The length of the body of the reply, as far as it is known. */
  readonly length?: number
  /** A status that is no failure. */
  readonly accepted?: number
}

/** A reply of which everything has arrived. */
interface S3Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

/** A reply that is no success. */
class S3Error extends Error {
  readonly status: number
  readonly code: string

  constructor({ method, key = '' }: S3Request, status: number, code: string, text: string) {
    super(`${method} ${key || 'the bucket'} failed with ${status} ${code}${text && `: ${text}`}`)
    this.status = status
    this.code = code
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    const { status, code } = this
    const isFailure = status >= 500 && status !== NOT_IMPLEMENTED
    return isFailure || [408, 409, 429].includes(status) || TRANSIENT_CODES.has(code)
  }
}

/** An object of a bucket. */
interface BucketObject {
  readonly key: string
  readonly bytes: number
}

/**
 * A bucket that speaks the protocol of S3. Keys are below the prefix of the location. Reads see every write
 * that has resolved. Calls are repeated for up to two minutes; then they reject with a `StorageFailure`.
 */
export class S3Bucket {
  readonly #location: S3Location
  readonly #url: URL
  #client: Promise<AwsClient> | undefined
  /** How far the clock of the server is ahead, in milliseconds. */
  #clockOffset = 0
  #repeatMs = CALL_MS_MAX

  constructor(location: S3Location) {
    const { bucket, endpoint, region } = location
    this.#location = location
    this.#url = new URL(
      endpoint === undefined
        ? `https://${bucket}.s3.${region}.amazonaws.com/`
        : `${endpoint.replace(/\/+$/, '')}/${bucket}/`,
    )
  }

  /** Lists the objects whose keys begin with a prefix, in the order of their keys. */
  async list(prefix: string): Promise<readonly BucketObject[]> {
    const objects: BucketObject[] = []
    const own = this.#location.prefix
    let token: string | undefined
    do {
      const query = {
        'list-type': '2',
        prefix: own + prefix,
        ...(token !== undefined && { 'continuation-token': token }),
      }
      const page = (await this.#call({ method: 'GET', query })).body.toString()
      for (const [, object] of page.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        objects.push({ key: tagOf(object!, 'Key')!.slice(own.length), bytes: Number(tagOf(object!, 'Size')) })
      }
      token = tagOf(page, 'NextContinuationToken')
    } while (token !== undefined)
    return objects
  }

  /** Resolves to `length` bytes from `position` on, fewer at the end; undefined without such an object. */
  async get(key: string, position: number, length: number): Promise<Buffer | undefined> {
    return (await this.#get(key, position, length))?.body
  }

  /** Resolves to a small object, and the milliseconds since it was stored, by the clock of the server. */
  async getDated(key: string): Promise<{ readonly text: string; readonly ageMs: number } | undefined> {
    const reply = await this.#get(key, 0, SMALL_BYTES_MAX)
    if (reply === undefined) return undefined
    const timeOf = (name: string) => Date.parse(reply.headers.get(name)!)
    return { text: reply.body.toString(), ageMs: timeOf('date') - timeOf('last-modified') }
  }

  async #get(key: string, position: number, length: number): Promise<S3Reply | undefined> {
    const headers = { range: `bytes=${position}-${position + length - 1}` }
    const reply = await this.#call({ method: 'GET', key, headers, length, accepted: 404 })
    return reply.status === 404 ? undefined : reply
  }

  /**
   * Stores an object unless the key exists. Makes one attempt, which may have stored it if it rejects; if
   * repeated, the object that exists may be that of an earlier attempt.
   */
  async create(key: string, body: Uint8Array, isRepeated = false): Promise<'created' | 'exists'> {
    const headers = { 'if-none-match': '*' }
    const request = { method: 'PUT', key, body, headers, accepted: 412 } as const
    const { status } = await this.#call(request, isRepeated ? this.#repeatMs : 0)
    return status === 412 ? 'exists' : 'created'
  }

  /** Stores an object, or replaces it. */
  async put(key: string, body: Uint8Array): Promise<void> {
    await this.#call({ method: 'PUT', key, body })
  }

  /** Removes an object if it exists. */
  async remove(key: string): Promise<void> {
    await this.#call({ method: 'DELETE', key })
  }

  /** Makes only one attempt from now on. */
  stopRepeating(): void {
    this.#repeatMs = 0
  }

  /** Repeats a request that has the same effect again, until it succeeds or cannot. */
  async #call(request: S3Request, repeatMs = this.#repeatMs): Promise<S3Reply> {
    const startedAt = performance.now()
    for (let attempt = 1; ; attempt++) {
      try {
        return await trackExternalWork(this.#send(request))
      } catch (error) {
        const isFinal = isRefusal(error) || performance.now() - startedAt >= repeatMs
        if (isFinal) throw failureOf(error)
        await setTimeout(backoff(attempt))
      }
    }
  }

  async #send(request: S3Request, isCorrected = false): Promise<S3Reply> {
    const { method, key = '', query = {}, headers = {}, body, length = 0, accepted } = request
    const url = new URL(this.#url)
    if (key !== '') url.pathname += encodeURI(this.#location.prefix + key)
    url.search = new URLSearchParams(query).toString()
    this.#client ??= this.#signIn()
    const signed = await (await this.#client).sign(url.href, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'x-amz-content-sha256': sha256(body) }) },
      ...(body !== undefined && { body: body as BodyInit }),
      aws: { datetime: new Date(Date.now() + this.#clockOffset).toISOString().replace(/[:-]|\.\d{3}/g, '') },
    })
    const timeoutMs = ATTEMPT_MS_MAX + Math.round((length + (body?.length ?? 0)) / RATE_MIN)
    const response = await this.#location.fetch(signed, { signal: AbortSignal.timeout(timeoutMs) })
    const reply = {
      status: response.status,
      headers: response.headers,
      body: Buffer.from(await response.arrayBuffer()),
    }
    if (response.ok || response.status === accepted) return reply
    const text = reply.body.toString()
    const code = tagOf(text, 'Code') ?? ''
    if (!isCorrected && this.#isCorrectable(code, response)) return this.#send(request, true)
    throw new S3Error(request, response.status, code, tagOf(text, 'Message') ?? '')
  }

  /** Whether another attempt will be made with another time or other credentials. */
  #isCorrectable(code: string, response: Response): boolean {
    if (code === 'RequestTimeTooSkewed' || code === 'RequestExpired') {
      this.#clockOffset = Date.parse(response.headers.get('date') ?? '') - Date.now() || 0
      return true
    }
    if (!OLD_CREDENTIALS_CODES.has(code)) return false
    this.#client = undefined
    return true
  }

  async #signIn(): Promise<AwsClient> {
    try {
      const { AwsClient } = await importSigner()
      const { accessKeyId, secretAccessKey, sessionToken } = await this.#location.credentials()
      const { region } = this.#location
      return new AwsClient({
        accessKeyId,
        secretAccessKey,
        ...(sessionToken !== undefined && { sessionToken }),
        service: 's3',
        region,
        retries: 0,
      })
    } catch (error) {
      this.#client = undefined
      throw error
    }
  }
}

/** How long to wait after so many attempts, in milliseconds. */
export function backoff(attempts: number): number {
  const pause = Math.min(BACKOFF_MS.first * 2 ** (attempts - 1), BACKOFF_MS.max)
  return pause * (0.5 + Math.random() / 2)
}

/** The server refuses a body that was cut or changed on its way. */
function sha256(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex')
}

async function importSigner(): Promise<typeof import('aws4fetch')> {
  try {
    return await import('aws4fetch')
  } catch (error) {
    throw new StorageFailure('io', '`headwater/s3` needs the package `aws4fetch`: npm install aws4fetch', {
      nothingWritten: true,
      cause: error,
    })
  }
}

/** Whether the same request would fail again, and has changed nothing. */
function isRefusal(error: unknown): boolean {
  if (error instanceof S3Error) return !error.isTransient
  return HeadwaterError.is(error) || StorageFailure.is(error)
}

function failureOf(error: unknown): StorageFailure {
  if (StorageFailure.is(error)) return error
  const isDenied = error instanceof S3Error && (error.status === 403 || error.status === 401)
  const nothingWritten = isRefusal(error)
  return new StorageFailure(isDenied ? 'denied' : 'io', (error as Error).message, {
    nothingWritten,
    cause: error,
  })
}

/** The content of an element in a reply. */
function tagOf(xml: string, name: string): string | undefined {
  const [, text] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? []
  return text
    ?.replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

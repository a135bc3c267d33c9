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

const ATTEMPT_MS_MAX = 30_000
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
/**
 * Smaller objects are stored by one request, larger ones in parts of exactly this size, except the last:
 * Cloudflare R2 requires parts of the same size. At least 5 MiB.
 */
const PART_BYTES = 8 * 1_048_576

interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
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

/** A reply of which everything has arrived. */
interface S3Reply {
  readonly headers: Headers
  readonly body: Buffer
}

/** An object of a bucket. */
interface BucketObject {
  readonly key: string
  readonly bytes: number
}

/** An object that does not exist before `finish` has resolved. */
interface Upload {
  write(bytes: Uint8Array): Promise<void>
  finish(): Promise<void>
  /** Removes what was written. Never rejects. */
  abandon(): Promise<void>
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
    const headers = { range: `bytes=${position}-${position + length - 1}` }
    try {
      return (await this.#call({ method: 'GET', key, headers })).body
    } catch (error) {
      if (statusOf(error) === 404) return undefined
      throw error
    }
  }

  /**
   * Stores an object unless the key exists. Makes one attempt, which may have stored it if it rejects; if
   * repeated, the object that exists may be that of an earlier attempt.
   */
  async create(key: string, body: Uint8Array, isRepeated = false): Promise<'created' | 'exists'> {
    const request = { method: 'PUT', key, body, headers: { 'if-none-match': '*' } } as const
    try {
      await (isRepeated ? this.#call(request) : this.#attempt(request))
      return 'created'
    } catch (error) {
      if (statusOf(error) === 412) return 'exists'
      throw failureOf(error, false)
    }
  }

  /** Stores an object, or replaces it. */
  async put(key: string, body: Uint8Array): Promise<void> {
    await this.#call({ method: 'PUT', key, body })
  }

  /** Begins an object that is stored in parts. */
  upload(key: string): Upload {
    let waiting: Uint8Array[] = []
    let bytes = 0
    let uploadId: string | undefined
    const tags: string[] = []
    const store = async () => {
      const all = Buffer.concat(waiting)
      const body = all.subarray(0, PART_BYTES)
      waiting = [all.subarray(body.length)]
      bytes = all.length - body.length
      if (uploadId === undefined) {
        const reply = await this.#call({ method: 'POST', key, query: { uploads: '' } })
        uploadId = tagOf(reply.body.toString(), 'UploadId')!
      }
      const query = { partNumber: String(tags.length + 1), uploadId }
      const part = await this.#call({ method: 'PUT', key, query, body })
      tags.push(part.headers.get('etag')!)
    }
    return {
      write: async (part) => {
        waiting.push(Uint8Array.from(part))
        bytes += part.length
        while (bytes >= PART_BYTES) await store()
      },
      finish: async () => {
        if (uploadId === undefined) return this.put(key, Buffer.concat(waiting))
        if (bytes > 0) await store()
        await this.#complete(key, uploadId, tags)
      },
      abandon: async () => {
        waiting = []
        if (uploadId === undefined) return
        await this.abort(key, uploadId)
      },
    }
  }

  /** Lists up to 1,000 uploads that are neither finished nor abandoned; none without the permission. */
  async uploads(): Promise<readonly { readonly key: string; readonly uploadId: string }[]> {
    const { prefix } = this.#location
    const query = { uploads: '', prefix }
    const page = await this.#call({ method: 'GET', query }).catch(() => undefined)
    const found = page?.body.toString().matchAll(/<Upload>(.*?)<\/Upload>/gs) ?? []
    return [...found].map(([, upload]) => {
      return { key: tagOf(upload!, 'Key')!.slice(prefix.length), uploadId: tagOf(upload!, 'UploadId')! }
    })
  }

  /** Removes the parts of an upload. Never rejects. */
  async abort(key: string, uploadId: string): Promise<void> {
    await this.#call({ method: 'DELETE', key, query: { uploadId } }).catch(() => {})
  }

  async #complete(key: string, uploadId: string, tags: readonly string[]): Promise<void> {
    const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
    try {
      await this.#call({ method: 'POST', key, query: { uploadId }, body })
    } catch (error) {
      // An earlier attempt whose reply was lost has finished the upload.
      const isFinished = statusOf(error) === 404 && (await this.ageMs(key)) !== undefined
      if (!isFinished) throw error
    }
  }

  /** Removes an object if it exists. */
  async remove(key: string): Promise<void> {
    await this.#call({ method: 'DELETE', key })
  }

  /** Resolves to the milliseconds since an object was stored, by the clock of the server. */
  async ageMs(key: string): Promise<number | undefined> {
    try {
      const { headers } = await this.#call({ method: 'HEAD', key })
      return Date.parse(headers.get('date')!) - Date.parse(headers.get('last-modified')!)
    } catch (error) {
      if (statusOf(error) === 404) return undefined
      throw error
    }
  }

  /** Repeats a request that has the same effect again, until it succeeds or cannot. */
  async #call(request: S3Request): Promise<S3Reply> {
    const startedAt = performance.now()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(request)
      } catch (error) {
        const isRefused = error instanceof S3Error && !error.isTransient
        const isFinal = isRefused || HeadwaterError.is(error) || StorageFailure.is(error)
        if (isFinal || performance.now() - startedAt > CALL_MS_MAX) throw failureOf(error, false)
        await setTimeout(backoff(attempt))
      }
    }
  }

  #attempt(request: S3Request): Promise<S3Reply> {
    return trackExternalWork(this.#send(request))
  }

  async #send(request: S3Request, isCorrected = false): Promise<S3Reply> {
    const { method, key = '', query = {}, headers = {}, body } = request
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
    const response = await this.#location.fetch(signed, { signal: AbortSignal.timeout(ATTEMPT_MS_MAX) })
    const reply = { headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
    // A failure to complete an upload may follow the headers of a success.
    const isLateFailure = method === 'POST' && response.ok && reply.body.includes('<Error>')
    if (response.ok && !isLateFailure) return reply
    const text = reply.body.toString()
    const code = tagOf(text, 'Code') ?? ''
    if (!isCorrected && this.#isCorrectable(code, response)) return this.#send(request, true)
    throw new S3Error(request, isLateFailure ? 500 : response.status, code, tagOf(text, 'Message') ?? '')
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
function sha256(body: Uint8Array | string): string {
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

function statusOf(error: unknown): number | undefined {
  const cause = StorageFailure.is(error) ? error.cause : error
  return cause instanceof S3Error ? cause.status : undefined
}

function failureOf(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error)) return error
  const isDenied = error instanceof S3Error && (error.status === 403 || error.status === 401)
  const isRefused = HeadwaterError.is(error) || (error instanceof S3Error && !error.isTransient)
  return new StorageFailure(isDenied ? 'denied' : 'io', (error as Error).message, {
    nothingWritten: nothingWritten || isRefused,
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

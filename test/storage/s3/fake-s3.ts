import { type ObjectStorageOptions, objectStorage } from '../../../adapters/storage/s3/index.ts'
import type { S3Location } from '../../../adapters/storage/s3/s3-bucket.ts'
import type { Storage } from '../../../src/storage/contract.ts'

/** What a fake bucket does with a request, in place of serving it. */
export type Fault = 'lose request' | 'lose response' | 'cut response' | 'repeat' | 'slow down' | 'refuse'

interface StoredObject {
  readonly body: Buffer
  readonly at: number
}

/** A bucket in memory behind `fetch`: what the storage uses of S3. Any faults are planned by the test. */
export class FakeS3 {
  readonly objects = new Map<string, StoredObject>()
  readonly #changes: Request[] = []
  /** Whether it honours `if-none-match`. */
  isConditional = true
  /** Decides what happens to a request. */
  faultOf: (method: string, key: string) => Fault | undefined | Promise<Fault | undefined> = () => undefined
  /** An access key that is no longer accepted, and the code of its refusal. */
  oldKey: { readonly id: string; readonly code: string } | undefined
  readonly requests: string[] = []
  /** Its clock, in milliseconds. */
  now = () => Date.now()

  /** A storage in this bucket. */
  storage(options: Partial<ObjectStorageOptions> = {}): Storage {
    const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }
    return objectStorage({
      bucket: 'data',
      endpoint: 'http://s3',
      credentials,
      fetch: this.fetch,
      ...options,
    })
  }

  readonly fetch: typeof fetch = async (input) => {
    const request = input as Request
    const url = new URL(request.url)
    const key = keyOf(url)
    this.requests.push(`${request.method} ${key}`)
    const fault = await this.faultOf(request.method, key)
    const refusal = this.#refusal(request.headers)
    if (refusal !== undefined) return this.#error(403, refusal)
    if (fault === 'refuse') return this.#error(403, 'AccessDenied')
    if (fault === 'slow down') return this.#error(503, 'SlowDown')
    if (fault === 'lose request') throw new TypeError('fetch failed')
    if (request.method === 'PUT' || request.method === 'DELETE') this.#changes.push(request.clone())
    // The client gets the second reply.
    if (fault === 'repeat') await this.#serve(request.clone(), key, url.searchParams)
    const reply = await this.#serve(request, key, url.searchParams)
    if (fault === 'lose response') throw new TypeError('fetch failed')
    return fault === 'cut response' ? new Response(cutBody(), reply) : reply
  }

  /** Repeats every request that has changed something, in the same order, as a network may do. */
  async repeatChanges(): Promise<void> {
    for (const request of this.#changes.splice(0)) {
      const url = new URL(request.url)
      await this.#serve(request, keyOf(url), url.searchParams)
    }
  }

  #refusal(headers: Headers): string | undefined {
    const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(
      headers.get('x-amz-date')!,
    )!
    const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    if (Math.abs(time - this.now()) > 900_000) return 'RequestTimeTooSkewed'
    const isOld = headers.get('authorization')!.includes(`Credential=${this.oldKey?.id}/`)
    return isOld ? this.oldKey?.code : undefined
  }

  async #serve(request: Request, key: string, query: URLSearchParams): Promise<Response> {
    const { method, headers } = request
    const body = Buffer.from(await request.arrayBuffer())
    if (query.has('list-type')) return this.#list(query)
    if (method === 'PUT') return this.#put(key, body, headers)
    if (method === 'DELETE') return this.#delete(key)
    return this.#get(key, headers)
  }

  #list(query: URLSearchParams): Response {
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(query.get('prefix')!)).sort()
    const rest = keys.filter((key) => key > (query.get('continuation-token') ?? ''))
    // Small pages, so that there are several.
    const page = rest.slice(0, 100)
    const contents = page.map((key) => {
      return `<Contents><Key>${key}</Key><Size>${this.objects.get(key)!.body.length}</Size></Contents>`
    })
    const isLast = page.length === rest.length
    const more = isLast ? '' : `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>`
    return this.#reply(200, `<ListBucketResult>${contents.join('')}${more}</ListBucketResult>`)
  }

  #put(key: string, body: Buffer, headers: Headers): Response {
    if (this.isConditional && headers.get('if-none-match') === '*' && this.objects.has(key)) {
      return this.#error(412, 'PreconditionFailed')
    }
    this.objects.set(key, { body, at: this.now() })
    return this.#reply(200, '')
  }

  #delete(key: string): Response {
    this.objects.delete(key)
    return this.#reply(204, null)
  }

  #get(key: string, headers: Headers): Response {
    const object = this.objects.get(key)
    if (object === undefined) return this.#error(404, 'NoSuchKey')
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.get('range') ?? '') ?? []
    const body = start === undefined ? object.body : object.body.subarray(Number(start), Number(end) + 1)
    const modified = { 'last-modified': new Date(object.at).toUTCString() }
    return this.#reply(200, Uint8Array.from(body), modified)
  }

  #error(status: number, code: string): Response {
    return this.#reply(status, `<Error><Code>${code}</Code><Message>${code}</Message></Error>`)
  }

  #reply(status: number, body: BodyInit | null, headers: Record<string, string> = {}): Response {
    return new Response(body, { status, headers: { date: new Date(this.now()).toUTCString(), ...headers } })
  }
}

export function locationOf({ fetch }: Pick<FakeS3, 'fetch'>): S3Location {
  return {
    bucket: 'data',
    prefix: '',
    endpoint: 'http://s3',
    region: 'us-east-1',
    credentials: async () => ({ accessKeyId: 'key', secretAccessKey: 'secret' }),
    fetch,
  }
}

function keyOf({ pathname }: URL): string {
  return decodeURI(pathname).split('/').slice(2).join('/')
}

function cutBody(): ReadableStream {
  return new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) })
}

import { onAbort } from '../../src/engine/abort.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { contentCodingOf, readBody } from '../../src/wire/content-coding.ts'
import { mediaKind, optionalJsonBody, requireJson } from '../../src/wire/media-type.ts'
import { HeldBytes } from './held-bytes.ts'
import type { RequestContext } from './request-context.ts'

const COMPRESSION_ALLOWANCE_BYTES = 65_536

/** What a body is refused for that cannot be read or is too long. */
type BodyErrorCode = 'bad_json' | 'bad_proto'

/** A mandatory JSON body. Throws 400 `bad_json` before reading it when the content type is another (wire-behaviour.md 1.5). */
export async function jsonBody(context: RequestContext): Promise<Uint8Array> {
  requireJson(context.header('content-type'))
  return wholeBody(context, 'bad_json')
}

/** An optional JSON body: undefined when there is none. */
export async function optionalBody(context: RequestContext): Promise<Uint8Array | undefined> {
  const contentType = context.header('content-type')
  if (mediaKind(contentType) === undefined) return undefined
  requireJson(contentType)
  return optionalJsonBody(contentType, await wholeBody(context, 'bad_json'))
}

/** The body, decompressed. Rejects with the code when it is longer than allowed, damaged or cut off, with `rate_limited` when too much is on its way. */
export async function wholeBody(context: RequestContext, code: BodyErrorCode): Promise<Uint8Array> {
  const { request } = context
  const { maxBodyBytes, maxBodiesBytes, bodies } = context.settings
  const source = unreadBody(request)
  if (source === null) return new Uint8Array(0)
  const coding = contentCodingOf(context.header('content-encoding')) ?? 'identity'
  const held = new HeldBytes(bodies)
  const reader = source.getReader()
  // Not every runtime ends the body with the request: whoever waits for the rest would wait for ever.
  const ignoreAbort = onAbort(request.signal, () => {
    reader.cancel(request.signal.reason).catch(() => {})
  })
  // Few bytes that are compressed may become as many as are allowed, but not before all are there: who stalls keeps no more than was sent.
  const hold = (length: number, isWhole: boolean) => {
    const decompressed = isWhole && coding !== 'identity' ? maxBodyBytes : 0
    // One alone always has room: it would be refused for ever.
    held.set(Math.min(length + decompressed, maxBodiesBytes))
  }
  try {
    // Compressed, a body may be a little longer than what it holds.
    const sourceMax = coding === 'identity' ? maxBodyBytes : maxBodyBytes + COMPRESSION_ALLOWANCE_BYTES
    const body = await readBody(boundedBody(reader, sourceMax, code, hold), coding, code)
    // In some runtimes the body of a request that was cut off just ends.
    request.signal.throwIfAborted()
    if (body.length > maxBodyBytes) throw tooLong(maxBodyBytes, code)
    return body
  } catch (error) {
    request.signal.throwIfAborted()
    throw error
  } finally {
    ignoreAbort()
    held.release()
  }
}

/** The body that nobody has begun to read. Throws 500 `other` when a body parser was faster: nothing is left to be read then. */
export function unreadBody(request: Request): ReadableStream<Uint8Array> | null {
  if (request.bodyUsed || request.body?.locked) {
    const remedy = 'mount this handler before any body parser, or keep the parser off its paths'
    throw new HeadwaterError('other', `the request body was already read: ${remedy}`)
  }
  // Where a runtime knows no streams of requests (service workers of Firefox), there is no telling whether it has a body either.
  return request.body === undefined ? bodyAsBlob(request) : request.body
}

function bodyAsBlob(request: Request): ReadableStream<Uint8Array> {
  let reading: Promise<ReadableStreamDefaultReader<Uint8Array>> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reading ??= request.blob().then((blob) => blob.stream().getReader())
        const { done, value } = await (await reading).read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: async (reason) => (await reading)?.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Passes the body on until it is too long, or `hold` throws: so a limit below that of the protocol also saves the memory. */
function boundedBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
  code: BodyErrorCode,
  hold: (length: number, isWhole: boolean) => void,
): ReadableStream<Uint8Array> {
  let length = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((cause: unknown) => {
          throw new HeadwaterError(code, 'the request body could not be read', { cause })
        })
        if (done) {
          hold(length, true)
          controller.close()
          return
        }
        length += value.length
        if (length > bytesMax) {
          reader.cancel().catch(() => {})
          throw tooLong(bytesMax, code)
        }
        try {
          hold(length, false)
        } catch (error) {
          reader.cancel().catch(() => {})
          throw error
        }
        controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

function tooLong(bytesMax: number, code: BodyErrorCode): HeadwaterError {
  return new HeadwaterError(code, `the body must not exceed ${bytesMax} bytes`)
}

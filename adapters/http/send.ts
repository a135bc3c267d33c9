import { utf8 } from '../../src/model/bytes.ts'
import {
  compressedBody,
  RESPONSE_COMPRESSION_BYTES_MIN,
  responseCodingOf,
} from '../../src/wire/content-coding.ts'
import { corsHeaders } from './cors.ts'
import type { Settings } from './options.ts'
import type { Reply } from './reply.ts'

/** Makes the response: compressed by `Accept-Encoding` when it is long enough and not a stream (wire-behaviour.md 1.4), with CORS headers. */
export async function send(reply: Reply, request: Request, settings: Settings): Promise<Response> {
  const headers = new Headers(reply.headers)
  if (settings.cors) {
    for (const [name, value] of Object.entries(corsHeaders(request, settings.words))) headers.set(name, value)
  }
  const body = typeof reply.body === 'string' ? utf8(reply.body) : reply.body
  const sent = body instanceof Uint8Array ? await encoded(body, headers, request, settings) : body
  const bodyless = sent === undefined || request.method === 'HEAD'
  return new Response(bodyless ? null : (sent as BodyInit), { status: reply.status, headers })
}

async function encoded(
  body: Uint8Array,
  headers: Headers,
  request: Request,
  settings: Settings,
): Promise<Uint8Array> {
  if (body.length <= RESPONSE_COMPRESSION_BYTES_MIN) return body
  headers.append('vary', 'accept-encoding')
  const coding = responseCodingOf(request.headers.get('accept-encoding'))
  try {
    const compressed = await compressedBody(body, coding)
    if (compressed === undefined || coding === undefined) return body
    headers.set('content-encoding', coding)
    return compressed
  } catch (error) {
    // A runtime whose codec fails can still answer.
    settings.onError(error, request)
    return body
  }
}

import type { ServerResponse } from 'node:http'
import type { Exchange } from '../http/exchange.ts'
import type { Reply } from '../http/reply.ts'
import { ChunkWriter } from './chunk-writer.ts'
import type { NodeResponse } from './protocols.ts'
import { abortResponse, isClosed, outletOf } from './response.ts'

/**
 * Sends a reply. `onError` receives the failure of an iterable body. Throws if the headers cannot be sent.
 */
export function writeReply(
  exchange: Exchange,
  res: NodeResponse,
  reply: Reply,
  onError: (error: unknown) => void,
  openShare: OpenShare,
): void {
  const { status, headers, body } = reply
  if (typeof body !== 'object' || body instanceof Uint8Array) {
    writeWhole(exchange.method, res, reply, openShare)
    return
  }
  const chunks = body[Symbol.asyncIterator]()
  if (isClosed(res)) {
    void chunks.return?.()
    return
  }
  // Both kinds of responses have the methods used here; only their overloads differ.
  const http1 = res as ServerResponse
  http1.writeHead(status, headers)
  // Node would keep the headers until the first chunk.
  http1.flushHeaders()
  body.onEvicted = () => {
    // Otherwise the body reports the reason to its client.
    if (outletOf(http1).writableNeedDrain) abortResponse(res)
  }
  new ChunkWriter(chunks, http1, onError).start()
}

/** Responses from this size on are counted in `limits.readBufferBytes` until they are sent. */
const COUNTED_BYTES_MIN = 65_536

/** Sends a reply that has no iterable body. */
export function writeWhole(
  method: string | undefined,
  res: NodeResponse,
  { status, headers, body = '' }: Reply,
  openShare?: OpenShare,
): void {
  if (isClosed(res)) return
  const isBodiless = method === 'HEAD' || status === 204 || status === 304
  const content = body as string | Uint8Array
  const http1 = res as ServerResponse
  const length = Buffer.byteLength(content)
  if (openShare !== undefined && length >= COUNTED_BYTES_MIN) {
    const share = openShare(() => abortResponse(res))
    share.correct(length)
    http1.once('close', () => share.close())
  }
  http1.writeHead(status, isBodiless ? headers : { ...headers, 'content-length': length })
  http1.end(content)
}

/** Opens the memory of a response that is not sent yet; `end` drops it. */
export type OpenShare = (end: () => void) => { correct(bytes: number): void; close(): void }

import { pipeline, Readable } from 'node:stream'
import { constants, createGunzip } from 'node:zlib'
import { concatBytes } from '../../src/model/bytes.ts'
import { isGzip } from './gzip-members.ts'
import { TransferError } from './transfer-error.ts'

/** An input decompressed, if it is gzip, of any number of members. One that was cut off ends where it was cut. */
export async function* plainInput(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = input[Symbol.asyncIterator]()
  const start: Uint8Array[] = []
  let bytes = 0
  while (bytes < 2) {
    const { done, value } = await source.next()
    if (done) break
    start.push(value)
    bytes += value.length
  }
  const all = restored(concatBytes(start), source)
  if (!isGzip(concatBytes(start))) {
    yield* all
    return
  }
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 256 * 1024 })
  // Whoever reads is told of an error by the last of the streams.
  pipeline(Readable.from(all), gunzip, () => {})
  try {
    for await (const chunk of gunzip) yield chunk
  } catch (cause) {
    if (!isZlibError(cause)) throw cause
    throw new TransferError(`the compressed input is damaged: ${(cause as Error).message}`, { cause })
  }
}

async function* restored(
  start: Uint8Array,
  source: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (start.length > 0) yield start
    for (;;) {
      const { done, value } = await source.next()
      if (done) return
      yield value
    }
  } finally {
    await source.return?.()
  }
}

function isZlibError(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('Z_')
}

import { trackExternalWork } from '../../src/runtime/clock.ts'
import { CompressedDataError, type Compression, nodeZlib } from '../../src/wire/codecs.ts'
import { platformCodec } from '../../src/wire/compression.ts'
import { Malformed } from '../../src/wire/json.ts'

/**
 * Decompresses the payload of a frame. Rejects with {@link Malformed} if it is damaged or too long. Returns
 * undefined if the runtime has no such codec: there is none for zstd in browsers, and a client that asks for
 * frames there loads none.
 */
export function decompressFrame(
  compression: Compression,
  payload: Uint8Array,
  bytesMax: number,
): Promise<Uint8Array> | undefined {
  const codec = platformCodec(compression)
  return codec && trackExternalWork(codec.decompress(payload, bytesMax)).catch(malformed)
}

function malformed(error: unknown): never {
  if (!(error instanceof CompressedDataError)) throw error
  throw new Malformed(`a compressed frame is invalid: ${error.message}`)
}

/** Compresses the body of a request. Returns undefined if the runtime has no codec on other threads. */
export function compressBody(body: Uint8Array): Promise<Uint8Array> | undefined {
  const codec = nodeZlib() && platformCodec('gzip')
  return codec && trackExternalWork(codec.compress(body))
}

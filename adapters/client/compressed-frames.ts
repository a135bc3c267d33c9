import { concatBytes } from '../../src/model/bytes.ts'
import { trackExternalWork } from '../../src/runtime/clock.ts'
import { type Codec, CompressedDataError, type Compression } from '../../src/wire/codec.ts'
import { nodeGzip, nodeZlib, nodeZstd } from '../../src/wire/codec-node.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/codec-zstd.ts'
import { Malformed } from '../../src/wire/json.ts'

/** Decompresses the payload of a frame. Rejects with `Malformed` if it is damaged or too long. */
export async function decompressFrame(
  compression: Compression,
  payload: Uint8Array,
  bytesMax: number,
): Promise<Uint8Array> {
  const { decompress } = compression === 'gzip' ? gzip() : zstd()
  try {
    return await trackExternalWork(decompress(payload, bytesMax))
  } catch (error) {
    if (error instanceof CompressedDataError)
      throw new Malformed(`a compressed frame is invalid: ${error.message}`)
    throw error
  }
}

/** Compresses the body of a request. Resolves to undefined if the runtime has no codec on other threads. */
export async function compressBody(body: Uint8Array): Promise<Uint8Array | undefined> {
  const zlib = nodeZlib()
  return zlib && trackExternalWork(nodeGzip(zlib).compress(body))
}

function gzip(): Pick<Codec, 'decompress'> {
  const zlib = nodeZlib()
  return zlib === undefined ? { decompress: gunzip } : nodeGzip(zlib)
}

let portable: Codec | undefined

function zstd(): Codec {
  const zlib = nodeZlib()
  portable ??= (zlib && nodeZstd(zlib)) ?? portableZstd(loadZstdBinding)
  return portable
}

/** gzip of browsers. */
async function gunzip(payload: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  const source = new Blob([payload as Uint8Array<ArrayBuffer>]).stream()
  const reader = source.pipeThrough(new DecompressionStream('gzip')).getReader()
  const parts: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return concatBytes(parts)
      length += value.length
      if (length > bytesMax) throw new CompressedDataError('too-large', 'decompresses to too much')
      parts.push(value)
    }
  } catch (error) {
    if (error instanceof CompressedDataError) throw error
    throw new CompressedDataError('malformed', 'damaged compressed data', error)
  } finally {
    reader.cancel().catch(() => {})
  }
}

import type { Codec, Compression } from './codec.ts'
import { portableGzip } from './codec-gzip.ts'
import { nodeGzip, nodeZlib, nodeZstd } from './codec-node.ts'
import { loadZstdBinding, portableZstd } from './codec-zstd.ts'

/** Resolves to the codec of the runtime, or else to that of a library. */
export async function loadCodec(algorithm: Compression): Promise<Codec> {
  const zlib = nodeZlib()
  if (algorithm === 'zstd') return (zlib && nodeZstd(zlib)) ?? portableZstd(loadZstdBinding)
  return zlib === undefined ? portableGzip(await import('./gzip-module.ts')) : nodeGzip(zlib)
}

import { describe, expect, it } from 'vitest'
import { concatBytes } from '../../src/model/bytes.ts'
import { type NodeZlib, nodeZlib, nodeZstd } from '../../src/wire/codec-node.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/codec-zstd.ts'
import { rawBlock, zstdFrame } from './zstd-data.ts'

const portable = portableZstd(loadZstdBinding)

/** Imitates `node:zlib` of a later Node: its limit, errors and buffers, one frame per call. */
const laterZlib: NodeZlib = {
  ...nodeZlib()!,
  zstdCompress(data, callback) {
    void portable.compress(data).then((result) => callback(null, Buffer.from(result)))
  },
  zstdDecompress(data, { maxOutputLength }, callback) {
    const fail = (code: string) => callback(Object.assign(new Error(code), { code }), data)
    void portable.decompress(data, 2_097_152).then(
      (result) =>
        result.length > maxOutputLength ? fail('ERR_BUFFER_TOO_LARGE') : callback(null, Buffer.from(result)),
      () => fail('ZSTD_error_corruption_detected'),
    )
  },
}

describe('nodeZstd', () => {
  const codec = nodeZstd(laterZlib)!
  const frame = (...content: number[]) =>
    zstdFrame({ window: 0, blocks: [rawBlock(Uint8Array.from(content), true)] })

  it('is absent where the runtime lacks it', () => {
    const { zstdCompress: _one, zstdDecompress: _two, ...earlier } = laterZlib
    expect(nodeZstd(earlier)).toBeUndefined()
  })

  it('round-trips its input as plain arrays', async () => {
    const data = new Uint8Array(5000).map((_, index) => index >> 4)
    const compressed = await codec.compress(data)
    const decompressed = await codec.decompress(compressed, 5000)
    expect(decompressed).toEqual(data)
    expect([compressed.constructor, decompressed.constructor]).toEqual([Uint8Array, Uint8Array])
  })

  it('counts all frames against the limit', async () => {
    const data = concatBytes([frame(1, 2), frame(), frame(3)])
    expect(await codec.decompress(data, 3)).toEqual(Uint8Array.of(1, 2, 3))
    await expect(codec.decompress(data, 2)).rejects.toMatchObject({ reason: 'too-large' })
    await expect(codec.decompress(data, 1)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it('reports damaged data', async () => {
    const damaged = zstdFrame({ contentSize: 9n, blocks: [rawBlock(Uint8Array.of(1), true)] })
    await expect(codec.decompress(damaged, 100)).rejects.toMatchObject({ reason: 'malformed' })
  })
})

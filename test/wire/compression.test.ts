import { afterEach, describe, expect, it, vi } from 'vitest'

const data = new Uint8Array(5000).map((_, index) => index >> 4)
const limits = { bytesMax: 5000, code: 'bad_frame' } as const

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

/**
 * Loads the module as in a runtime of its own, because it caches codecs. Only a browser lacks `node:zlib`.
 */
async function inRuntime(runtime: 'node' | 'browser') {
  vi.resetModules()
  if (runtime === 'browser') vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined)
  return import('../../src/wire/compression.ts')
}

describe.each(['zstd', 'gzip'] as const)('%s', (algorithm) => {
  it.each(['node', 'browser'] as const)('works in %s', async (runtime) => {
    const { compress, decompress } = await inRuntime(runtime)
    const compressed = await compress(algorithm, data)
    expect(compressed.length).toBeLessThan(1000)
    expect(await decompress(algorithm, compressed, limits)).toEqual(data)
  })

  it.each(['node', 'browser'] as const)('from another encoder is decompressed in %s', async (runtime) => {
    const elsewhere = await inRuntime(runtime === 'node' ? 'browser' : 'node')
    const compressed = await elsewhere.compress(algorithm, data)
    vi.restoreAllMocks()
    const { decompress } = await inRuntime(runtime)
    expect(await decompress(algorithm, compressed, limits)).toEqual(data)
  })

  it.each(['node', 'browser'] as const)(
    'returns plain arrays in %s, whose slices are copies',
    async (runtime) => {
      const { compress, decompress } = await inRuntime(runtime)
      const compressed = await compress(algorithm, data)
      const decompressed = await decompress(algorithm, compressed, limits)
      expect([compressed.constructor.name, decompressed.constructor.name]).toEqual([
        'Uint8Array',
        'Uint8Array',
      ])
    },
  )

  it('rejects with the given code and a reason', async () => {
    const { compress, decompress } = await inRuntime('node')
    const compressed = await compress(algorithm, data)
    await expect(
      decompress(algorithm, compressed, { bytesMax: 4999, code: 'bad_json' }),
    ).rejects.toMatchObject({
      code: 'bad_json',
      message: `${algorithm} data decompresses to more than 4999 bytes`,
    })
    await expect(decompress(algorithm, data, { bytesMax: 4999, code: 'bad_proto' })).rejects.toMatchObject({
      code: 'bad_proto',
      message: expect.stringMatching(new RegExp(`^${algorithm} data is malformed: .`)),
    })
  })
})

import { expect, test } from 'vitest'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { DirectoryCatalog } from '../../../../adapters/storage/filesystem/state/catalog.ts'
import { writeDocument } from '../../../../adapters/storage/filesystem/state/stored-documents.ts'
import { compareUtf8 } from '../../../../src/model/bytes.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { collected } from './collected.ts'

/** Sorts differently by UTF-16 than by UTF-8. */
const LETTERS = ['', 'a', 'b', '\u0000', 'é', '\uffee', '😀']

/** A frame of documents, by key. */
function frameOf(documents: Iterable<readonly [key: string, version: number]>): Buffer {
  const writer = new ByteWriter()
  for (const [key, version] of documents) {
    writeDocument(writer, { key, document: { version, text: String(version) } })
  }
  return Buffer.from(writer.bytes)
}

test.each([1, 2, 3, 4])('documents of a checkpoint with changes match a map (seed %i)', async (seed) => {
  const random = new Prng(seed)
  const letter = () => random.pick(LETTERS)
  const anyKey = () => letter() + letter() + letter()
  const model = new Map(Array.from({ length: 60 }, (_, i) => [anyKey(), i] as const))
  const stored = [...model].sort(([a], [b]) => compareUtf8(a, b))
  const catalog = new DirectoryCatalog()
  for (let i = 0; i < stored.length; i += 7) catalog.addStored('settings', frameOf(stored.slice(i, i + 7)))
  expect(catalog.storedSize).toBe(model.size)
  for (let i = 0; i < 200; i++) {
    const key = anyKey()
    if (random.chance(0.5)) {
      model.delete(key)
      catalog.delete('settings', key)
    } else {
      model.set(key, 100 + i)
      catalog.set('settings', key, { version: 100 + i, text: String(100 + i) })
    }
    const probe = anyKey()
    await catalog.retain('settings', probe)
    expect(catalog.versionOf('settings', probe)).toBe(model.get(probe) ?? null)
    const range = { prefix: letter(), after: anyKey(), limit: 5 }
    const expected = [...model.keys()]
      .filter((key) => key.startsWith(range.prefix) && compareUtf8(key, range.after) > 0)
      .sort(compareUtf8)
      .slice(0, range.limit)
    expect((await catalog.list('settings', range)).map((document) => document.key)).toEqual(expected)
  }
  const all = (await collected(catalog.entries())).map(({ key, version }) => [key, version])
  expect(all).toEqual([...model].sort(([a], [b]) => compareUtf8(a, b)))
})

test('a snapshot does not see later changes', async () => {
  const catalog = new DirectoryCatalog()
  catalog.addStored(
    'settings',
    frameOf([
      ['a', 1],
      ['b', 2],
    ]),
  )
  catalog.freeze()
  const [captured] = catalog.snapshot()
  catalog.delete('settings', 'a')
  catalog.set('settings', 'c', { version: 3, text: '3' })
  expect(await collected(captured!.documents)).toEqual([[frameOf([['a', 1]]), frameOf([['b', 2]])]])
  expect((await collected(catalog.entries())).map(({ key }) => key)).toEqual(['b', 'c'])
})

test.each([
  [
    'in one frame',
    [
      [
        ['b', 1],
        ['a', 2],
      ],
    ],
  ],
  ['from frame to frame', [[['b', 1]], [['a', 2]]]],
  ['that occur twice', [[['a', 1]], [['a', 2]]]],
] as const)('rejects documents out of order, %s', (_, frames) => {
  const catalog = new DirectoryCatalog()
  const add = () => {
    for (const frame of frames) catalog.addStored('settings', frameOf(frame))
  }
  expect(add).toThrow(new RangeError('documents are not in order'))
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import {
  documentPage,
  writeDocument,
} from '../../../../adapters/storage/filesystem/state/stored-documents.ts'
import { compareUtf8 } from '../../../../src/model/bytes.ts'

const pageOf = (keys: readonly string[]) => {
  const writer = new ByteWriter()
  for (const key of keys) writeDocument(writer, { key, document: { version: 1, text: '{}' } })
  return documentPage(Buffer.from(writer.bytes))
}

test('a page has its documents in the order of UTF-8, each once', () => {
  const letter = fc.constantFrom('a', 'b', '\0', 'é', '\u{ffff}', '\u{10000}')
  const key = fc.string({ unit: letter, maxLength: 4 })
  fc.assert(
    fc.property(fc.uniqueArray(key, { minLength: 2, maxLength: 20 }), fc.nat(), (keys, place) => {
      const sorted = keys.toSorted(compareUtf8)
      expect(pageOf(sorted).starts).toHaveLength(keys.length + 1)
      const index = place % (keys.length - 1)
      const [one, next] = sorted.slice(index)
      expect(() => pageOf(sorted.with(index, next!).with(index + 1, one!))).toThrow('not in order')
      expect(() => pageOf(sorted.with(index, next!))).toThrow('not in order')
    }),
  )
})

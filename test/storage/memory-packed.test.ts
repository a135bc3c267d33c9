import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NOW } from '../../adapters/conformance/log-writer.ts'
import { PackedDocuments } from '../../adapters/storage/memory/packed-documents.ts'
import { hashOfWords, idOfWords, parseId, WORDS } from '../../adapters/storage/memory/packed-ids.ts'
import { PackedTable } from '../../adapters/storage/memory/packed-table.ts'
import { SlotOrder } from '../../adapters/storage/memory/slot-order.ts'
import { SYSTEM_STREAM_CONFIG } from '../../src/core/config.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { idFrom, secureRandom } from '../../src/runtime/ids.ts'
import { streamKey } from '../../src/storage/documents.ts'

describe('ids as words', () => {
  test.each([0, 7, 12, 20, 27])('have hashes that spread if they differ only from digit %i', (start) => {
    const count = 20_000
    const words = new Uint32Array(WORDS)
    const [shards, cells, hashes] = [new Map<number, number>(), new Map<number, number>(), new Set<number>()]
    for (let i = 0; i < count; i++) {
      const id = `${'0'.repeat(start)}${i.toString(16).padStart(5, '0')}`.padEnd(32, '0')
      expect(parseId(id, words)).toBe(true)
      expect(idOfWords(words)).toBe(id)
      const hash = hashOfWords(words)
      hashes.add(hash)
      shards.set(hash % 64, (shards.get(hash % 64) ?? 0) + 1)
      cells.set((hash >>> 6) % 32_768, (cells.get((hash >>> 6) % 32_768) ?? 0) + 1)
    }
    expect(hashes.size).toBeGreaterThan(count - 3)
    expect(Math.max(...shards.values())).toBeLessThan((1.5 * count) / 64)
    expect(Math.max(...cells.values())).toBeLessThan(10)
  })

  const zeros = '0'.repeat(31)
  test.each(['', 'a'.repeat(31), 'a'.repeat(33), 'A'.repeat(32), `${zeros}g`, `${zeros}é`])(
    'do not stand for %j',
    (id) => {
      expect(parseId(id, new Uint32Array(WORDS))).toBe(false)
    },
  )
})

describe('numbers in an order', () => {
  test('match a sorted array for any sequence of changes', () => {
    const values = fc.array(fc.nat({ max: 2_000 }), { minLength: 1, maxLength: 1_500 })
    fc.assert(
      fc.property(values, fc.constantFrom(1, -1), (numbers, sign) => {
        const list = new SlotOrder((a, b) => sign * (a - b))
        const expected = new Set<number>()
        for (const number of numbers) {
          if (expected.delete(number)) list.delete(number)
          else {
            expected.add(number)
            list.add(number)
          }
        }
        const sorted = [...expected].toSorted((a, b) => sign * (a - b))
        expect(list.first()).toBe(sorted[0])
        const from = sorted[Math.floor(sorted.length / 3)] ?? 0
        const reached = (number: number) => sign * (number - from) >= 0
        expect([...list.from(reached)]).toEqual(sorted.filter(reached))
      }),
    )
  })

  test('stay in order when they are added in order', () => {
    const list = new SlotOrder((a, b) => a - b)
    const numbers = Array.from({ length: 5_000 }, (_, index) => index + 1)
    for (const number of numbers) list.add(number)
    expect([...list.from(() => true)]).toEqual(numbers)
    for (const number of numbers) list.delete(number)
    expect(list.first()).toBeUndefined()
  })
})

describe('packed documents', () => {
  test('keep ids, times and names that occur in any place of a text', () => {
    const packed = new PackedDocuments()
    const id = '0123456789abcdef'.repeat(2)
    const texts = new Map([
      ['basin\0name', { basin: 'name', name: 'name', logId: id, createdAt: 1_700_000_000_000 }],
      ['basin\0other', { basin: 'basin', name: 'other', logId: 'other', createdAt: 1_800_000_000_000 }],
      [
        '',
        {
          '': '',
          id: `${id}${id}1`,
          at: 17_000_000_000_000_000,
          in: [1_700_000_000_000.5, -1_700_000_000_000],
        },
      ],
      [id, { id: id.toUpperCase(), [id]: `"${id}"`, text: `\u0001\u0002\u0003\0 ${id}` }],
      ['basin\0quo"ted\\', { name: 'quo"ted\\', created: '1700000000000', short: id.slice(1) }],
      ['basin\0\u0001', { name: '\u0001' }],
    ])
    for (const [key, value] of texts) packed.set(key, { text: JSON.stringify(value), version: 1 })
    for (const [key, value] of texts) expect(JSON.parse(packed.get(key)!.text)).toEqual(value)
  })

  test('match a map for any sequence of changes', () => {
    const name = fc.oneof(
      fc.constantFrom('a', 'b', 'ab', 'a\0b', '\ufffd', 'é', '😀', ''),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
    )
    const text = fc
      .tuple(name, fc.string({ unit: 'binary', maxLength: 30 }))
      .map((parts) => JSON.stringify(parts))
    const change = fc.tuple(name, fc.option(text))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const packed = new PackedDocuments()
        const expected = new Map<string, { text: string; version: number }>()
        for (const [version, [key, text]] of changes.entries()) {
          if (text === null) packed.delete(key)
          else packed.set(key, { text, version })
          if (text === null) expected.delete(key)
          else expected.set(key, { text, version })
        }
        const keys = [...expected.keys()].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        expect([...packed.keysFrom('')]).toEqual(keys)
        for (const [key, document] of expected) expect(packed.get(key)).toEqual(document)
      }),
    )
  })

  test('do not mistake a lone surrogate for U+FFFD', () => {
    const packed = new PackedDocuments()
    packed.set('\ufffd', { text: '1', version: 1 })
    expect(packed.get('\ud800')).toBeUndefined()
  })

  test('store little more of a text than what distinguishes it from others', () => {
    const table = new PackedTable()
    const packed = new PackedDocuments(table)
    for (let i = 0; i < 10_000; i++) {
      const text = JSON.stringify({ name: `stream-${i}`, config: 'the same for all of them, '.repeat(20) })
      packed.set(`stream-${i}`, { text, version: i })
    }
    expect(table.pageBytes / 10_000).toBeLessThan(30)
  })

  test('store 64 bytes of the document of a stream', () => {
    const table = new PackedTable()
    const packed = new PackedDocuments(table)
    for (let i = 0; i < 10_000; i++) {
      const logId = idFrom(secureRandom)
      const document = {
        basin: 'my-basin',
        name: `streams/${i}`,
        logId,
        createdAt: NOW + i,
        config: SYSTEM_STREAM_CONFIG,
        epoch: 1,
      }
      packed.set(streamKey('my-basin', `streams/${i}`), { text: JSON.stringify(document), version: i })
    }
    expect(table.pageBytes / 10_000).toBeLessThan(64)
  })
})

describe('a packed table', () => {
  test('gives the memory of removed and replaced values back', () => {
    const table = new PackedTable()
    const value = new Uint8Array(1_000)
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 2_000; i++) table.set(utf8(`key-${i}`), value)
      expect(table.pageBytes).toBeLessThan(2.2 * 2_000 * 1_017)
    }
    for (let i = 0; i < 1_999; i++) table.delete(utf8(`key-${i}`))
    expect(table.size).toBe(1)
    expect(table.pageBytes).toBeLessThan(3 * 65_536)
    expect(table.value(table.find(utf8('key-1999')))).toEqual(value)
  })
})

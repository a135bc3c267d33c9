import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SlabBlocks, Slabs } from '../../adapters/storage/memory/slab-blocks.ts'
import type { StoredBlock } from '../../src/storage/contract.ts'

const SLAB_BYTES = 65_536

function blockOf(firstSeqNum: number, data: Uint8Array, expiresAt: number | null = null): StoredBlock {
  return {
    firstSeqNum,
    endSeqNum: firstSeqNum + 2,
    firstTimestamp: 1_700_000_000_000 + firstSeqNum,
    lastTimestamp: 1_700_000_000_001 + firstSeqNum,
    meteredBytes: data.length + 16,
    expiresAt,
    data,
  }
}

function blocksOf(list: SlabBlocks): StoredBlock[] {
  return [...list.from(() => true)]
}

const CHANGE = fc.record({
  list: fc.integer({ min: 0, max: 4 }),
  kind: fc.constantFrom('allocate', 'copy', 'copy', 'delete first', 'delete any', 'clear', 'abandon'),
  bytes: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 1_000, max: 9_000 })),
  pick: fc.nat(),
})

describe('blocks of small logs in slabs', () => {
  test('match arrays of blocks for any sequence of changes', () => {
    fc.assert(
      fc.property(fc.array(CHANGE, { maxLength: 200 }), (changes) => {
        const slabs = new Slabs()
        const lists = Array.from({ length: 5 }, () => new SlabBlocks(slabs))
        const expected: StoredBlock[][] = lists.map(() => [])
        let next = 0
        const read: { readonly block: StoredBlock; readonly copy: StoredBlock }[] = []
        for (const { list: index, kind, bytes, pick } of changes) {
          const list = lists[index]!
          const model = expected[index]!
          const data = new Uint8Array(bytes).fill(next % 251)
          if (kind === 'abandon') list.allocate(bytes)
          else if (kind === 'clear') {
            list.clear()
            model.length = 0
          } else if (kind.startsWith('delete')) {
            const position = kind === 'delete first' ? 0 : pick % Math.max(model.length, 1)
            const [removed] = model.splice(position, 1)
            if (removed !== undefined) list.delete(removed)
          } else {
            next += 2
            const block = blockOf(next, data, pick % 2 === 0 ? pick : null)
            const held = model.reduce((sum, other) => sum + other.data.length, 0)
            expect(list.takes(block)).toBe(held + bytes <= 16_384 && model.length < 64)
            if (!list.takes(block)) continue
            const memory = kind === 'allocate' ? list.allocate(bytes)! : data
            memory.set(data)
            expect(list.add({ ...block, data: memory })).toBe(model.length === 0)
            model.push(block)
          }
          const first = list.first()
          expect(first).toEqual(model[0])
          if (first !== undefined) read.push({ block: first, copy: structuredClone(first) })
        }
        for (const [index, list] of lists.entries()) {
          expect(blocksOf(list)).toEqual(expected[index])
          const from = expected[index]!.at(-1)?.firstSeqNum ?? 0
          expect([...list.from(({ firstSeqNum }) => firstSeqNum >= from)]).toEqual(expected[index]!.slice(-1))
        }
        // Readers keep views.
        for (const { block, copy } of read) expect(block).toEqual(copy)
      }),
      { numRuns: 200 },
    )
  })

  test('the data of a block that was read can be added to another log', () => {
    const slabs = new Slabs()
    const [one, other] = [new SlabBlocks(slabs), new SlabBlocks(slabs)]
    one.add(blockOf(0, new Uint8Array(100).fill(1)))
    const [read] = blocksOf(one)
    other.add(blockOf(40, read!.data))
    other.add(blockOf(42, new Uint8Array(100).fill(2)))
    expect(blocksOf(one)).toEqual([blockOf(0, new Uint8Array(100).fill(1))])
    expect(blocksOf(other).map(({ firstSeqNum, data }) => [firstSeqNum, data[0]])).toEqual([
      [40, 1],
      [42, 2],
    ])
  })

  test('slabs take at most about twice the memory of what is left after most blocks are freed', () => {
    const slabs = new Slabs()
    const lists = Array.from({ length: 2_000 }, () => new SlabBlocks(slabs))
    for (let i = 0; i < 8; i++) {
      for (const list of lists) list.add(blockOf(2 * i, new Uint8Array(960)))
    }
    const full = slabs.bytes
    expect(full).toBeLessThan(2_000 * 8 * 1_024 + 20 * SLAB_BYTES)
    // One log in 20 keeps its blocks: each slab has some of them.
    for (const [index, list] of lists.entries()) if (index % 20 !== 0) list.clear()
    expect(slabs.bytes).toBeLessThan((2 * full) / 20 + 2 * SLAB_BYTES)
    expect(lists.filter((list) => blocksOf(list).length === 8)).toHaveLength(100)
    for (const list of lists) list.clear()
    expect(slabs.bytes).toBe(SLAB_BYTES)
  })
})

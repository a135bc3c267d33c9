import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SLAB_BYTES, Slabs } from '../../adapters/storage/memory/slabs.ts'
import type { StoredBlock } from '../../src/storage/contract.ts'

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

/** Owners of blocks, by number: the places of their blocks. */
class Owners {
  readonly places: number[][]
  readonly slabs = new Slabs((owner, slab) => {
    const places = this.places[owner]!
    for (const [index, place] of places.entries()) {
      if (this.slabs.isIn(place, slab)) places[index] = this.slabs.move(place)
    }
  })

  constructor(count: number) {
    this.places = Array.from({ length: count + 1 }, () => [])
  }

  add(owner: number, block: StoredBlock): void {
    this.places[owner]!.push(this.slabs.add(block, owner))
    this.slabs.compact()
  }

  remove(owner: number, index: number): void {
    for (const place of this.places[owner]!.splice(index, 1)) this.slabs.remove(place)
    this.slabs.compact()
  }

  clear(owner: number): void {
    for (const place of this.places[owner]!.splice(0)) this.slabs.remove(place)
    this.slabs.compact()
  }

  blocksOf(owner: number): StoredBlock[] {
    return this.places[owner]!.map((place) => this.slabs.blockAt(place))
  }
}

const CHANGE = fc.record({
  owner: fc.integer({ min: 1, max: 5 }),
  kind: fc.constantFrom('allocate', 'copy', 'copy', 'remove', 'remove', 'clear', 'abandon'),
  bytes: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 5_000, max: 60_000 })),
  pick: fc.nat(),
})

describe('blocks in slabs', () => {
  test('match arrays of blocks for any sequence of changes', () => {
    fc.assert(
      fc.property(fc.array(CHANGE, { maxLength: 100, size: 'max' }), (changes) => {
        const owners = new Owners(5)
        const { slabs } = owners
        const expected: StoredBlock[][] = owners.places.map(() => [])
        let next = 0
        const read: { readonly block: StoredBlock; readonly first: number | undefined }[] = []
        for (const { owner, kind, bytes, pick } of changes) {
          const model = expected[owner]!
          if (kind === 'abandon') slabs.allocate(bytes)
          else if (kind === 'clear') {
            owners.clear(owner)
            model.length = 0
          } else if (kind === 'remove') {
            const index = pick % Math.max(model.length, 1)
            model.splice(index, 1)
            owners.remove(owner, index)
          } else {
            next += 2
            const memory = kind === 'allocate' ? slabs.allocate(bytes) : new Uint8Array(bytes)
            memory.fill(next % 251)
            const block = blockOf(next, memory, pick % 2 === 0 ? pick : null)
            owners.add(owner, block)
            model.push(blockOf(next, new Uint8Array(bytes).fill(next % 251), block.expiresAt))
          }
          const place = owners.places[owner]![0]
          if (place !== undefined) read.push({ block: slabs.blockAt(place), first: model[0]!.data[0] })
        }
        for (const [owner, blocks] of expected.entries()) expect(owners.blocksOf(owner)).toEqual(blocks)
        // Readers keep views.
        for (const { block, first } of read) {
          expect(block.data.length === 0 || block.data[0] === first).toBe(true)
          expect(block.data.every((byte) => byte === first)).toBe(true)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('keep data in memory that was allocated for it', () => {
    const { slabs } = new Owners(1)
    const memory = slabs.allocate(100).fill(1)
    const place = slabs.add(blockOf(0, memory), 1)
    expect(slabs.blockAt(place).data.buffer).toBe(memory.buffer)
    expect(slabs.blockAt(place).data.byteOffset).toBe(memory.byteOffset)
  })

  test('copy the data of a block that was read and is added again', () => {
    const owners = new Owners(2)
    owners.add(1, blockOf(0, new Uint8Array(100).fill(1)))
    owners.add(2, blockOf(40, owners.blocksOf(1)[0]!.data))
    owners.add(2, blockOf(42, new Uint8Array(100).fill(2)))
    expect(owners.blocksOf(1)).toEqual([blockOf(0, new Uint8Array(100).fill(1))])
    expect(owners.blocksOf(2).map(({ firstSeqNum, data }) => [firstSeqNum, data[0]])).toEqual([
      [40, 1],
      [42, 2],
    ])
  })

  test('take at most about twice the memory of what is left after most blocks are freed', () => {
    const owners = new Owners(2_000)
    const { slabs } = owners
    for (let i = 0; i < 8; i++) {
      for (let owner = 1; owner <= 2_000; owner++) owners.add(owner, blockOf(2 * i, new Uint8Array(960)))
    }
    const full = slabs.bytes
    expect(full).toBeLessThan(2_000 * 8 * 1_024 + 20 * SLAB_BYTES)
    // One owner in 20 keeps its blocks: each slab has some of them.
    for (let owner = 1; owner <= 2_000; owner++) if (owner % 20 !== 0) owners.clear(owner)
    expect(slabs.bytes).toBeLessThan((2 * full) / 20 + 2 * SLAB_BYTES)
    expect(owners.places.filter((_, owner) => owners.blocksOf(owner).length === 8)).toHaveLength(100)
    for (let owner = 1; owner <= 2_000; owner++) owners.clear(owner)
    expect(slabs.bytes).toBe(SLAB_BYTES)
  })
})

import fc from 'fast-check'
import { encodePage, type Part, parseBlocks } from '../../../../adapters/storage/indexeddb/page.ts'
import type { PackedBlocks } from '../../../../adapters/storage/indexeddb/schema.ts'
import { concatBytes } from '../../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { equal } from '../harness/assertions.ts'
import { rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { storedBlock } from '../storage-models.ts'

const NUMBERS_BYTES = 7 * Float64Array.BYTES_PER_ELEMENT

/** The two buffers of an IndexedDB page, concatenated after the number of its blocks. */
export const page = target({
  name: 'indexeddb-page',
  models: fc.array(storedBlock, { maxLength: 4 }).map(ascending),
  encode: (blocks) => {
    const { numbers, data } = encodePage(blocks)
    return concatBytes([Uint8Array.of(blocks.length), new Uint8Array(numbers.buffer), data])
  },
  decode: (input: Uint8Array) => parseBlocks(pageIn(input)),
  means: (blocks) => blocks,
  refuses: rangeError,
  verify(blocks, input) {
    const all = concatBytes([new Uint8Array(0), ...blocks.map(({ data }) => data)])
    equal(all, pageIn(input).data, 'the data of the blocks')
    equal(ascending(blocks), blocks, 'the blocks in their order')
  },
  share: 8,
})

/**
 * The numbers of pieces and their parts: a count, then for each part whether it exists and is wanted, and its
 * length.
 */
export const pieces = target({
  name: 'indexeddb-pieces',
  models: fc.array(storedBlock, { maxLength: 4 }).map(ascending),
  encode: (blocks) => {
    const { numbers, data } = encodePage(blocks)
    const parts = blocks.map(({ data: { length } }) => Uint8Array.of(0, length & 0xff, length >> 8))
    return concatBytes([Uint8Array.of(blocks.length), ...parts, new Uint8Array(numbers.buffer), data])
  },
  decode: (input: Uint8Array) => parseBlocks(...piecesIn(input)),
  means: (blocks) => blocks,
  refuses: rangeError,
  verify(blocks, input) {
    const [, parts] = piecesIn(input)
    const wanted = parts.filter((part) => part !== null)
    equal(
      blocks.map(({ data }) => data),
      wanted,
      'the data of the blocks',
    )
    equal(ascending(blocks), blocks, 'the blocks in their order')
  },
  share: 4,
})

/** Without empty and overlapping blocks, which cannot belong to one log. */
function ascending(blocks: readonly StoredBlock[]): StoredBlock[] {
  const kept: StoredBlock[] = []
  for (const block of [...blocks].sort((one, other) => one.firstSeqNum - other.firstSeqNum)) {
    const { firstSeqNum, endSeqNum } = block
    if (firstSeqNum < endSeqNum && firstSeqNum >= (kept.at(-1)?.endSeqNum ?? 0)) kept.push(block)
  }
  return kept
}

function pageIn(input: Uint8Array) {
  const count = Math.min(input[0] ?? 0, Math.floor((input.length - 1) / NUMBERS_BYTES))
  const start = 1 + Math.max(count, 0) * NUMBERS_BYTES
  return { numbers: new Float64Array(input.slice(1, start).buffer), data: input.subarray(start) }
}

function piecesIn(input: Uint8Array): [PackedBlocks, Part[]] {
  const count = Math.min(input[0] ?? 0, Math.floor((input.length - 1) / (3 + NUMBERS_BYTES)))
  const start = 1 + Math.max(count, 0) * 3
  const end = start + Math.max(count, 0) * NUMBERS_BYTES
  const numbers = new Float64Array(input.slice(start, end).buffer)
  let offset = end
  const parts = Array.from({ length: Math.max(count, 0) }, (_, index): Part => {
    const [kind, low, high] = input.subarray(1 + index * 3)
    const part = input.subarray(offset, offset + low! + 256 * high!)
    offset += part.length
    return kind === 1 ? undefined : kind === 2 ? null : part
  })
  return [{ numbers, data: new Uint8Array(0) }, parts]
}

import fc from 'fast-check'
import {
  type ChunkFacts,
  chunkFrameBytes,
  decodeChunk,
  decodeChunkBlocks,
  decodeIndex,
  encodeChunkFrame,
  encodeIndex,
} from '../../../adapters/storage/filesystem/chunk.ts'
import { FRAME_HEADER_BYTES } from '../../../adapters/storage/filesystem/frame.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { withChunkData, withFrames } from '../checksums.ts'
import { equal, ok } from '../harness/equal.ts'
import { checkNumbers } from '../harness/numbers.ts'
import { rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { integer, smallInteger } from '../models.ts'
import { expiry, storedBlock } from '../storage-models.ts'

const SALT = 0x5eed
const LOG = 7
const RUN_OFFSET = 32

function chunkOf(blocks: readonly StoredBlock[]): Uint8Array {
  return concatBytes([encodeChunkFrame(LOG, blocks, SALT), ...blocks.map(({ data }) => data)])
}

function repaired(input: Uint8Array): Uint8Array {
  const bytes = Buffer.from(input)
  const end = chunkFrameBytes(bytes)
  if (end > bytes.length || end < FRAME_HEADER_BYTES + 5) return withFrames(bytes, SALT)
  return withChunkData(bytes, SALT, 0, bytes.length - end)
}

export const chunk = target({
  name: 'chunk',
  models: fc.array(storedBlock, { maxLength: 4 }),
  encode: chunkOf,
  decode: (input: Uint8Array) => decodeChunk(Buffer.from(input), LOG, SALT),
  means: (blocks) => blocks,
  refuses: rangeError,
  verify(blocks, input) {
    checkNumbers(blocks)
    const start = chunkFrameBytes(Buffer.from(input))
    const data = concatBytes([new Uint8Array(0), ...blocks.map((block) => block.data)])
    equal(data, input.subarray(start), 'the data of the blocks')
    equal(decodeChunk(Buffer.from(chunkOf(blocks)), LOG, SALT), blocks, 'the blocks, written and read again')
  },
  repair: repaired,
  share: 40,
})

/** What a chunk says of its blocks, read without their data. */
export const chunkBlocks = target({
  name: 'chunk-blocks',
  models: fc.array(storedBlock, { maxLength: 4 }),
  encode: chunkOf,
  decode: (input: Uint8Array) => decodeChunkBlocks(Buffer.from(input), LOG, SALT),
  means: (blocks) => blocks.map(({ data, ...facts }) => ({ ...facts, dataBytes: data.length })),
  refuses: rangeError,
  verify: checkNumbers,
  repair: repaired,
  share: 15,
})

const chunks: fc.Arbitrary<ChunkFacts[]> = fc
  .array(fc.tuple(smallInteger, smallInteger, smallInteger, integer, integer, expiry), { maxLength: 4 })
  .map((facts) => {
    let offset = RUN_OFFSET
    return facts.map(([bytes, firstSeqNum, count, lastTimestamp, meteredBytes, minExpiry]) => {
      const at = offset
      offset += bytes
      const endSeqNum = firstSeqNum + count
      return { offset: at, bytes, firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, minExpiry }
    })
  })

export const runIndex = target({
  name: 'run-index',
  models: chunks,
  encode: (of) => Buffer.from(encodeIndex(of, SALT)),
  decode: (input: Uint8Array) => decodeIndex(Buffer.from(input), RUN_OFFSET, SALT),
  means: (of) => of,
  refuses: rangeError,
  verify(of) {
    checkNumbers(of)
    ok(
      of.every(({ offset }) => offset >= RUN_OFFSET),
      'a chunk lies before its run',
    )
    equal(decodeIndex(encodeIndex(of, SALT), RUN_OFFSET, SALT), of, 'the index, written and read again')
  },
  repair: (input) => withFrames(input, SALT),
  share: 20,
})

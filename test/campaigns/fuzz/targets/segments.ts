import fc from 'fast-check'
import { payloadEnd } from '../../../../adapters/storage/filesystem/files/frame.ts'
import {
  type ChunkFacts,
  decodeChunk,
  decodeChunkBlocks,
  decodeIndex,
  encodeChunkFrame,
  encodeIndex,
} from '../../../../adapters/storage/filesystem/segment/chunk.ts'
import { concatBytes } from '../../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { withFrames } from '../checksums.ts'
import { checkNumbers, equal, ok } from '../harness/assertions.ts'
import { rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { integer, smallInteger } from '../models.ts'
import { expiry, largeBlock, storedBlock } from '../storage-models.ts'

const SALT = 0x5eed
const LOG = 7
const RUN_OFFSET = 32

function chunkOf(blocks: readonly StoredBlock[]): Uint8Array {
  return concatBytes([encodeChunkFrame(LOG, blocks, SALT), ...blocks.map(({ data }) => data)])
}

function repaired(input: Uint8Array): Uint8Array {
  return withFrames(input, SALT)
}

const blocks = fc.oneof(
  fc.array(storedBlock, { maxLength: 4 }),
  largeBlock.map((block) => [block]),
)

export const chunk = target({
  name: 'chunk',
  models: blocks,
  encode: chunkOf,
  decode: (input: Uint8Array) => decodeChunk(Buffer.from(input), LOG, SALT),
  means: (blocks) => blocks,
  refuses: rangeError,
  verify(blocks, input) {
    checkNumbers(blocks)
    const start = payloadEnd(Buffer.from(input), 0)
    const data = concatBytes([new Uint8Array(0), ...blocks.map((block) => block.data)])
    equal(data, input.subarray(start, start + data.length), 'the data of the blocks')
    equal(decodeChunk(Buffer.from(chunkOf(blocks)), LOG, SALT), blocks, 'the blocks, written and read again')
  },
  repair: repaired,
  share: 40,
})

/** The block metadata of a chunk, read without the data. */
export const chunkBlocks = target({
  name: 'chunk-blocks',
  models: blocks,
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

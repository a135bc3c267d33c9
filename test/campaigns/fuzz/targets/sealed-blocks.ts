import fc from 'fast-check'
import { aesGcmOfNode } from '../../../../src/engine/encryption/aes-gcm.ts'
import { BlockOpener, splitSealedBlock } from '../../../../src/engine/encryption/encrypted-reader.ts'
import { StreamAead } from '../../../../src/engine/encryption/stream-aead.ts'
import { concatBytes, utf8 } from '../../../../src/model/bytes.ts'
import { EncryptionKey } from '../../../../src/model/encryption-key.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../../src/model/record.ts'
import { nodeCrypto } from '../../../../src/runtime/node.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import {
  decodeSegments,
  decodeSkeleton,
  encodePlaintext,
  encodeSegment,
  encodeSkeleton,
} from '../../../../src/storage/sealed-block.ts'
import { checkNumbers, equal, outcomeOf } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { sequence } from '../models.ts'
import { recordsOf } from './blocks.ts'

const KEY = new EncryptionKey(new Uint8Array(32).fill(7))
const NAMES = utf8('basin and stream')
const SUITE = aesGcmOfNode(nodeCrypto()!)
const NONCE = new Uint8Array(12)
const OPENER = new BlockOpener(new StreamAead(SUITE, NAMES), KEY)

function sealed(records: readonly SequencedRecord[]): Uint8Array {
  const plaintext = encodePlaintext(records)
  const ciphertext = plaintext && (SUITE.seal(KEY, NONCE, plaintext, NAMES) as Uint8Array)
  return encodeSegment({
    cipher: 'aes-256-gcm',
    meteredBytes: meteredOf(records),
    skeleton: encodeSkeleton(records),
    sealed: ciphertext && { nonce: NONCE, ciphertext },
  })
}

/** Metadata of the storage that matches the block, so that the cipher is reached. */
function stored(data: Uint8Array): StoredBlock {
  const expected = outcomeOf(() => {
    const segments = decodeSegments(data)
    const records = segments.flatMap(({ skeleton }) => decodeSkeleton(skeleton))
    const [first, last] = [records[0]!, records.at(-1)!]
    return {
      firstSeqNum: first.seqNum,
      endSeqNum: first.seqNum + records.length,
      firstTimestamp: first.timestamp,
      lastTimestamp: last.timestamp,
      meteredBytes: segments.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      expiresAt: null,
    }
  })
  return { ...('value' in expected ? expected.value : NOTHING), data }
}

const NOTHING = {
  firstSeqNum: 0,
  endSeqNum: 0,
  firstTimestamp: 0,
  lastTimestamp: 0,
  meteredBytes: 0,
  expiresAt: null,
}

/** Blocks of encrypted streams, opened with their key. */
export const encryptedBlock = target({
  name: 'encrypted-block',
  models: sequence.chain((records) =>
    fc
      .nat(records.length - 1)
      .map((at) => [records.slice(0, at), records.slice(at)].filter((part) => part.length > 0)),
  ),
  encode: (appends) => concatBytes(appends.map(sealed)),
  decode: (input: Uint8Array) =>
    splitSealedBlock(stored(input)).map((part) => OPENER.openWhole(part) as StoredBlock),
  refuses: headwaterError('storage', 'decryption_failed'),
  verify(blocks) {
    for (const block of blocks) {
      checkNumbers(block)
      const records = recordsOf(block.data)
      const seqNums = records.map(({ seqNum }) => seqNum)
      equal(
        seqNums,
        seqNums.map((_, i) => block.firstSeqNum + i),
        'the numbers of the records',
      )
      equal(block.firstSeqNum + records.length, block.endSeqNum, 'the end of the block')
      const times = records.map(({ timestamp }) => timestamp)
      equal(
        times,
        times.toSorted((a, b) => a - b),
        'the order of the timestamps',
      )
      equal(
        [times[0], times.at(-1)],
        [block.firstTimestamp, block.lastTimestamp],
        'the first and last timestamp',
      )
      equal(meteredOf(records), block.meteredBytes, 'the metered bytes of the records')
    }
  },
  share: 10,
})

function meteredOf(records: readonly SequencedRecord[]): number {
  return records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
}

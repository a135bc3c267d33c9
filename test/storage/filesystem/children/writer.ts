import { writeSync } from 'node:fs'
import { openDirectory } from '../../../../adapters/storage/filesystem/open-directory.ts'
import { systemClock } from '../../../../src/engine/system-clock.ts'
import { meteredBytesOf } from '../../../../src/model/record.ts'
import { encodeRecords } from '../../../../src/storage/block-codec.ts'
import {
  type Head,
  identityOf,
  type StorageSession,
  type StoredBlock,
} from '../../../../src/storage/contract.ts'
import { LARGE_BLOCK_BYTES, LOG_IDS, ROLL_BYTES, recordOf } from './records.ts'

/** Appends from many writers until it is killed, and tells each acknowledgement before the next append. */
const [directory = '', durability = 'sync'] = process.argv.slice(2)
const options = {
  durability: durability as 'sync' | 'os',
  rollBytes: ROLL_BYTES,
  largeBlockBytes: LARGE_BLOCK_BYTES,
}
const session = await openDirectory(directory, options, systemClock)
await Promise.all([...LOG_IDS.map((logId) => write(session, logId)), trim(session)])

async function write(session: StorageSession, logId: string): Promise<void> {
  let head = await session.head(logId)
  if (head === undefined) {
    await session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: 0 }])
    head = (await session.head(logId))!
  }
  for (;;) {
    const block = blockAt(logId, head.tail.seqNum)
    const next: Head = {
      ...head,
      tail: { seqNum: block.endSeqNum, timestamp: block.lastTimestamp },
      appendId: `${process.pid}-${block.endSeqNum}`,
    }
    await session.append({ logId, expected: identityOf(head), block, head: next })
    head = next
    writeSync(1, `${logId} ${block.endSeqNum}\n`)
  }
}

function blockAt(logId: string, firstSeqNum: number): StoredBlock {
  const count = 1 + (firstSeqNum % 4)
  const records = Array.from({ length: count }, (_, i) => recordOf(logId, firstSeqNum + i))
  return {
    firstSeqNum,
    endSeqNum: firstSeqNum + count,
    firstTimestamp: records[0]!.timestamp,
    lastTimestamp: records.at(-1)!.timestamp,
    meteredBytes: records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0),
    // Some expire, so that segments come to be half empty.
    expiresAt: firstSeqNum % 3 === 0 ? 1 : null,
    data: encodeRecords(records),
  }
}

async function trim(session: StorageSession): Promise<void> {
  for (let serial = 0; ; serial++) {
    await session.commit([
      { kind: 'put', collection: 'streams', key: 'one', value: serial },
      { kind: 'put', collection: 'streams', key: 'other', value: serial },
    ])
    await session.reclaim({ now: 1, trimmedBefore: 0, blocksMax: 50 })
  }
}

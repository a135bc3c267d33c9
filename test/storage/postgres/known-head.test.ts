// @module-tag slow

import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { systemClock } from '../../../src/index.ts'
import type { AppendRequest, StorageSession } from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { newSchema } from './schemas.ts'

let pglite: PGlite
let session: StorageSession
beforeAll(async () => {
  pglite = await PGlite.create()
  const storage = postgres({ client: pglite, schema: newSchema() })
  session = await storage.open({ clock: systemClock, onLogChanged() {} })
  await session.commit([{ kind: 'create-log', logId: 'log', epoch: 1, createdAt: 0 }])
  await session.append(append(0, 'x:1'))
  // They share a row.
  await Promise.all([session.append(append(1, 'x:2')), session.append(append(2, 'x:3'))])
  await session.append(append(3, 'y:1'))
})
afterAll(async () => {
  await session.close()
  await pglite.close()
})

const IDS = ['', 'x:1', 'x:2', 'x:3', 'y:1']

/** An append of one record that expires at once, at this position. */
function append(seqNum: number, appendId: string): AppendRequest {
  const timestamp = 1_000 + seqNum
  const head = { ...emptyHead(1, 0), tail: { seqNum: seqNum + 1, timestamp }, appendId }
  return {
    logId: 'log',
    expected: { epoch: 1, seqNum, appendId: IDS[seqNum]! },
    head,
    blocks: [
      {
        firstSeqNum: seqNum,
        endSeqNum: seqNum + 1,
        firstTimestamp: timestamp,
        lastTimestamp: timestamp,
        meteredBytes: 10,
        expiresAt: 5,
        data: new Uint8Array(10),
      },
    ],
  }
}

async function isReplaced(seqNum: number, appendId: string): Promise<boolean | undefined> {
  return (await session.head('log', { epoch: 1, seqNum, appendId }))?.isReplaced
}

describe('a known head', () => {
  test.each([
    ['of an empty log', 0, '', false],
    ['at the end of a row', 1, 'x:1', false],
    ['within a row of the same engine', 2, 'x:2', false],
    ['of the tail', 4, 'y:1', false],
    ['of another append at the end of a row', 3, 'z:3', true],
    ['of another append of the same engine at the end of a row', 3, 'x:9', true],
    ['of another engine within a row', 2, 'z:2', true],
  ])('%s: is %i, `%s` replaced?', async (_, seqNum, appendId, expected) => {
    expect(await isReplaced(seqNum, appendId)).toBe(expected)
  })

  test('is not treated as replaced once its records are freed', async () => {
    await session.reclaim({ now: 10, trimmedBefore: 0, blocksMax: 2 })
    expect(await isReplaced(2, 'z:2')).toBe(false)
    expect(await isReplaced(4, 'z:1')).toBe(true)
  })
})

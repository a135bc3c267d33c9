import { openLevel, putsOf } from '../rivals/level.ts'
import { openSqlite } from '../rivals/sqlite.ts'
import { openHeadwater, streamNumber } from './headwater.ts'
import { bodiesFrom, timestampOf } from './records.ts'

const BATCH_RECORDS = 1_000

interface Batch {
  /** Sequence number of its first record. */
  readonly first: number
  readonly bodies: readonly Uint8Array[]
}

/** One stream of `count` records. */
export async function fillHeadwater(directory: string, count: number): Promise<void> {
  const headwater = await openHeadwater(directory)
  const stream = streamNumber(headwater, 0)
  for (const { first, bodies } of batchesOf(count)) {
    await stream.append(bodies.map((body, index) => ({ body, timestamp: timestampOf(first + index) })))
  }
  await headwater.close()
}

export async function fillLevel(directory: string, count: number): Promise<void> {
  const level = await openLevel(directory)
  for (const { first, bodies } of batchesOf(count)) await level.batch(putsOf(first, bodies), { sync: false })
  await level.close()
}

export function fillSqlite(directory: string, count: number): void {
  const sqlite = openSqlite(directory, { indexed: true, timestampOf })
  for (const batch of batchesOf(count)) sqlite.append(batch)
  sqlite.close()
}

function* batchesOf(count: number): Generator<Batch, void, undefined> {
  for (let first = 0; first < count; first += BATCH_RECORDS) {
    yield { first, bodies: bodiesFrom(first, Math.min(BATCH_RECORDS, count - first)) }
  }
}

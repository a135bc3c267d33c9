import {
  indexedDb,
  type LowSpace,
  type StorageUsage,
  trimWhenLow,
} from '../../../adapters/storage/indexeddb/index.ts'
import { type Headwater, HeadwaterError, open, StorageFailure } from '../../../src/index.ts'

const storage = indexedDb('quota')
export type Told = LowSpace

const told: LowSpace[] = []
let hw: Headwater

const stream = () => hw.basin('b').stream('log')

export async function start(): Promise<void> {
  storage.lowSpace$.subscribe((usage) => told.push(usage))
  hw = await open({ storage, trimGraceMs: 0 })
  await stream().append('first')
}

export function usage(): Promise<StorageUsage> {
  return storage.usage()
}

/** What was told of low space. */
export function lowSpace(): LowSpace[] {
  return told
}

/** Appends so many bytes that do not compress. Resolves to why it failed. */
export async function append(bytes: number): Promise<{ kind: string; nothingWritten: boolean } | undefined> {
  const body = new Uint8Array(bytes)
  for (let i = 0; i < body.length; i += 50_000) crypto.getRandomValues(body.subarray(i, i + 50_000))
  try {
    await stream().append(body)
    return undefined
  } catch (error) {
    if (!HeadwaterError.is(error) || !StorageFailure.is(error.cause)) throw error
    return { kind: error.cause.kind, nothingWritten: error.cause.nothingWritten }
  }
}

/** The sequence numbers and lengths of what a new read sees. */
export async function stored(): Promise<[seqNum: number, bytes: number][]> {
  const { seqNum } = await stream().checkTail()
  const records: [number, number][] = []
  for (let from = 0; from < seqNum; ) {
    const batch = await stream().readBatch({ seqNum: from })
    for (const record of batch.records) records.push([record.seqNum, record.body.length])
    from = batch.lastSeqNum + 1
  }
  return records
}

export async function trim(seqNum: number): Promise<void> {
  await stream().trim(seqNum)
}

/** Has the oldest trimmed from now on, whenever space is low. */
export function trimByItself(freeShare: number): void {
  trimWhenLow(storage, { streams: () => [stream()], freeShare })
}

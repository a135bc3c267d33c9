import { indexedDb, type LowSpace, type StorageUsage } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

const storage = indexedDb('quota')

const events: LowSpace[] = []
let hw: Engine

const stream = () => hw.basin('b').stream('log')

export async function start(): Promise<void> {
  storage.lowSpace$.subscribe((usage) => events.push(usage))
  hw = await open({ storage, trimGraceMs: 0 })
  await stream().append('first')
}

export function usage(): Promise<StorageUsage> {
  return storage.usage()
}

/** What `lowSpace$` has emitted. */
export function lowSpaceEvents(): LowSpace[] {
  return events
}

/** Appends random bytes, which do not compress. Resolves to the failure, if any. */
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

/** The sequence numbers and lengths of all records. */
export async function storedRecords(): Promise<[seqNum: number, bytes: number][]> {
  const records = await stream().read({}, { as: 'bytes' }).toArray()
  return records.map(({ seqNum, body }) => [seqNum, body.length])
}

export async function trim(seqNum: number): Promise<void> {
  await stream().trim(seqNum)
}

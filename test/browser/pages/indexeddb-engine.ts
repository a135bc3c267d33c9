import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, open } from '../../../src/index.ts'

let hw: Engine | undefined

export async function openEngine(name: string): Promise<void> {
  hw = await open({ storage: indexedDb(name) })
}

export async function closeEngine(): Promise<void> {
  await hw!.close()
}

const stream = () => hw!.basin('b').stream('log')

/** Resolves to the sequence number of the first record. */
export async function append(bodies: readonly string[]): Promise<number> {
  const { start } = await stream().append(bodies.map((body) => ({ body })))
  return start.seqNum
}

/** The bodies of all records. */
export async function readAll(): Promise<string[]> {
  const records = await stream().read().toArray()
  return records.map(({ body }) => body)
}

/** Appends batches of `size` records `batch/index` until the page ends, and reports each acknowledgement. */
export async function appendForever(size: number): Promise<void> {
  const acknowledged = (globalThis as unknown as { acknowledged: (batch: number) => Promise<void> })
    .acknowledged
  const appendOn = async (batch: number): Promise<void> => {
    await append(Array.from({ length: size }, (_, index) => `${batch}/${index}`))
    await acknowledged(batch)
  }
  for (let batch = 0; ; batch += 3) await Promise.all([0, 1, 2].map((next) => appendOn(batch + next)))
}

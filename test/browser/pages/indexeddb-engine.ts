import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, HeadwaterError, open, systemClock } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

let hw: Engine | undefined

/** `speed` divides all delays. */
export async function openEngine(name: string, speed = 1): Promise<void> {
  const clock: typeof systemClock = {
    now: () => systemClock.now(),
    schedule: (delayMs, callback, options) => systemClock.schedule(delayMs / speed, callback, options),
  }
  hw = await open({ storage: indexedDb(name), clock, trimGraceMs: 0 })
}

export async function closeEngine(): Promise<void> {
  await hw!.close()
}

const stream = (name = 'log') => hw!.basin('b').stream(name)

/** Resolves to the sequence number of the first record. */
export async function append(bodies: readonly string[], name?: string): Promise<number> {
  const { start } = await stream(name).append(bodies.map((body) => ({ body })))
  return start.seqNum
}

/** The bodies of all records. */
export async function readAll(name?: string): Promise<string[]> {
  const bodies: string[] = []
  const { seqNum } = await stream(name).checkTail()
  let from = 0
  while (from < seqNum) {
    const { records: text } = await stream(name).readBatch({ seqNum: from })
    bodies.push(...text.map(({ body }) => body))
    from = text.at(-1)!.seqNum + 1
  }
  return bodies
}

/** Appends batches of `size` records `batch/index` until the page ends, and reports each acknowledgement. */
export async function appendForever(size: number, name?: string): Promise<void> {
  const acknowledged = (globalThis as unknown as { acknowledged: (batch: number) => Promise<void> })
    .acknowledged
  const appendOn = async (batch: number): Promise<void> => {
    await append(
      Array.from({ length: size }, (_, index) => `${batch}/${index}`),
      name,
    )
    await acknowledged(batch)
  }
  for (let batch = 0; ; batch += 3) await Promise.all([0, 1, 2].map((next) => appendOn(batch + next)))
}

/** The storage failure of a call, if any. Rejects with other errors. */
export async function failure(call: 'openEngine' | 'append' | 'readAll', ...args: string[]) {
  const calls = {
    openEngine: () => openEngine(args[0]!, 100),
    append: () => append(args),
    readAll: () => readAll(),
  }
  try {
    await calls[call]()
  } catch (error) {
    if (!HeadwaterError.is(error) || !StorageFailure.is(error.cause)) throw error
    const { kind, nothingWritten, message } = error.cause
    return { code: error.code, kind, nothingWritten, message }
  }
  return undefined
}

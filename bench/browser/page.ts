import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { type Engine, open, type Stream } from '../../src/index.ts'
import { openBare, Rows } from './rivals.ts'

// Runs in a page of its own browser for each side, so that none pays for the garbage of another.

const BODY_BYTES = 256
const BATCH_RECORDS = 1_000

/**
 * Prepares a side of a comparison. `count` is a number of appends, batches or records, depending on the work.
 */
type Side = (count: number) => Promise<Prepared>

interface Prepared {
  /** The timed part. */
  turn(): Promise<void>
  close(): Promise<void>
}

const SIDES: Readonly<Record<string, Side>> = {
  'append awaited': (count) => withStream(async (stream) => () => appendAwaited(stream, count)),
  'append at once': (count) =>
    withStream(async (stream) => async () => {
      await Promise.all(bodies(count).map((body) => stream.append(body)))
    }),
  'append batches': (count) => withStream(async (stream) => () => appendBatches(stream, count)),
  'read batches': (count) =>
    withStream(async (stream) => {
      const { seqNum } = await stream.checkTail()
      await appendBatches(stream, count / BATCH_RECORDS)
      return async () => expectBytes(await readAll(stream, seqNum, count), count)
    }),
  'read singles': (count) =>
    withStream(async (stream) => {
      const { seqNum } = await stream.checkTail()
      for (let batch = 0; batch < count / BATCH_RECORDS; batch++) {
        await Promise.all(bodies(BATCH_RECORDS).map((body) => stream.append(body)))
      }
      return async () => expectBytes(await readAll(stream, seqNum, count), count)
    }),
  async 'bare put'(count) {
    const bare = await openBare()
    return {
      async turn() {
        for (const body of bodies(count)) await bare.put(body)
      },
      close: async () => bare.close(),
    }
  },
  async 'Dexie batches'(count) {
    const rows = new Rows()
    return {
      turn: () => rows.addBatches(count, () => bodies(BATCH_RECORDS)),
      close: () => rows.delete(),
    }
  },
  async 'Dexie read'(count) {
    const rows = new Rows()
    await rows.addBatches(count / BATCH_RECORDS, () => bodies(BATCH_RECORDS))
    return {
      turn: async () => expectBytes(await rows.readAll(), count),
      close: () => rows.delete(),
    }
  },
}

const prepared = new Map<string, Prepared>()

export async function prepare(name: string, count: number): Promise<void> {
  prepared.set(name, await SIDES[name]!(count))
}

/** Repeats the timed part. Resolves to the milliseconds that it took. */
export async function turn(name: string, repeats: number): Promise<number> {
  const start = performance.now()
  for (let time = 0; time < repeats; time++) await prepared.get(name)!.turn()
  return performance.now() - start
}

export async function close(name: string): Promise<void> {
  await prepared.get(name)!.close()
  prepared.delete(name)
}

/** A new stream with one record, on an engine of its own. */
async function withStream(work: (stream: Stream) => Promise<() => Promise<void>>): Promise<Prepared> {
  const headwater = await openOurs()
  const stream = headwater.basin('bench').stream(crypto.randomUUID())
  await stream.append('first')
  return { turn: await work(stream), close: () => headwater.close() }
}

function openOurs(): Promise<Engine> {
  return open({
    storage: indexedDb('bench'),
    onBackgroundError: (error) => {
      // A background failure would make the measured work look faster than it is.
      throw error
    },
  })
}

/** Created before the timed part: generating random bytes takes longer than some of the measured work. */
const BODIES: readonly Uint8Array[] = Array.from({ length: BATCH_RECORDS }, () =>
  crypto.getRandomValues(new Uint8Array(BODY_BYTES)),
)

function bodies(count: number): readonly Uint8Array[] {
  return BODIES.slice(0, count)
}

async function appendAwaited(stream: Stream, count: number): Promise<void> {
  for (const body of bodies(count)) await stream.append(body)
}

async function appendBatches(stream: Stream, count: number): Promise<void> {
  for (let batch = 0; batch < count; batch++) await stream.append(bodies(BATCH_RECORDS))
}

async function readAll(stream: Stream, seqNum: number, count: number): Promise<number> {
  let bytes = 0
  for await (const batch of stream.read({ seqNum, count }, { as: 'bytes' }).batches()) {
    for (const { body } of batch.records) bytes += body.length
  }
  return bytes
}

function expectBytes(bytes: number, count: number): void {
  if (bytes !== count * BODY_BYTES) throw new Error(`read ${bytes} bytes instead of ${count * BODY_BYTES}`)
}

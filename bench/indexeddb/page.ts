import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { type Headwater, open, type Stream } from '../../src/index.ts'
import { timed } from '../harness/compare.ts'
import { openBare } from './bare.ts'
import { Rows } from './dexie-rows.ts'

// Runs in two pages, of two processes: one has headwater, the other those rivals that have garbage of their own.

const BODY_BYTES = 256
const BATCH_RECORDS = 1_000

/** Makes ready what takes turns, by name. `count` is of appends, batches or records, as the work has it. */
type Side = (count: number) => Promise<Prepared>

interface Prepared {
  /** What is timed. */
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

/** Does it so often. Resolves to the milliseconds that it took. */
export function turn(name: string, repeats: number): Promise<number> {
  return timed(async () => {
    for (let time = 0; time < repeats; time++) await prepared.get(name)!.turn()
  })
}

export async function close(name: string): Promise<void> {
  await prepared.get(name)!.close()
  prepared.delete(name)
}

/** A new stream, not empty, of an engine of its own. */
async function withStream(work: (stream: Stream) => Promise<() => Promise<void>>): Promise<Prepared> {
  const headwater = await openOurs()
  const stream = headwater.basin('bench').stream(crypto.randomUUID())
  await stream.append('first')
  return { turn: await work(stream), close: () => headwater.close() }
}

function openOurs(): Promise<Headwater> {
  return open({
    storage: indexedDb('bench'),
    onBackgroundError: (error) => {
      // What fails beside the work would make it look faster than it is.
      throw error
    },
  })
}

/** Made before anything is timed: random bytes take longer than some of what is measured. */
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
  for await (const batch of stream.read({ seqNum, count })) {
    for (const { body } of batch.records) bytes += body.length
  }
  return bytes
}

function expectBytes(bytes: number, count: number): void {
  if (bytes !== count * BODY_BYTES) throw new Error(`${bytes} bytes were read of ${count * BODY_BYTES}`)
}

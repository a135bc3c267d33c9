import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { type Headwater, open, type Stream } from '../../src/index.ts'
import { compare, timed } from '../harness/compare.ts'
import { type Row, speedRow } from '../harness/rows.ts'
import { openBare } from './bare.ts'
import { Rows } from './dexie-rows.ts'

/** Runs in the page. */
export interface Bench {
  readonly rounds: number
  /** Of what is asked for; less is quicker and says less. */
  readonly scale: number
}

const BODY_BYTES = 256
const BATCH_RECORDS = 1_000

export const WORKS: Readonly<Record<string, (bench: Bench) => Promise<Row[]>>> = {
  awaited,
  concurrent,
  batches,
  reading,
}

async function awaited(bench: Bench): Promise<Row[]> {
  const count = scaled(300, bench)
  const headwater = await openOurs()
  const stream = streamOf(headwater, 'awaited')
  await stream.append('first')
  const bare = await openBare()
  const rounds = await compare(bench.rounds, () => timed(() => appendAwaited(stream, count)), {
    bare: () =>
      timed(async () => {
        for (const body of bodies(count)) await bare.put(body)
      }),
  })
  await headwater.close()
  bare.close()
  const unit = { each: 'an append', count }
  return [
    speedRow(
      'awaited appends of one record',
      'a bare `put`, each in its own strict transaction',
      rounds.bare,
      0.8,
      unit,
    ),
  ]
}

async function concurrent(bench: Bench): Promise<Row[]> {
  const count = 100
  const headwater = await openOurs()
  const stream = streamOf(headwater, 'concurrent')
  await stream.append('first')
  const together = () => Promise.all(bodies(count).map((body) => stream.append(body)))
  const rounds = await compare(Math.max(1, bench.rounds * 3), () => timed(together), {
    awaited: () => timed(() => appendAwaited(stream, count)),
  })
  await headwater.close()
  const unit = { each: 'an append', count }
  return [speedRow('100 concurrent appends', '100 awaited ones', rounds.awaited, 10, unit)]
}

async function batches(bench: Bench): Promise<Row[]> {
  const count = scaled(50, bench)
  const headwater = await openOurs()
  const stream = streamOf(headwater, 'batches')
  await stream.append('first')
  const rows = new Rows()
  const rounds = await compare(bench.rounds, () => timed(() => appendBatches(stream, count)), {
    dexie: () => timed(() => rows.addBatches(count, () => bodies(BATCH_RECORDS))),
  })
  await headwater.close()
  await rows.delete()
  const unit = { each: 'a batch', count }
  return [
    speedRow(
      'batches of 1,000 × 256 B',
      'Dexie, `bulkAdd` of a row a record, strict',
      rounds.dexie,
      10,
      unit,
    ),
  ]
}

async function reading(bench: Bench): Promise<Row[]> {
  const batchCount = scaled(10, bench)
  const count = batchCount * BATCH_RECORDS
  const headwater = await openOurs()
  const inBatches = streamOf(headwater, 'read-batches')
  await appendBatches(inBatches, batchCount)
  const oneByOne = streamOf(headwater, 'read-singles')
  for (let batch = 0; batch < batchCount; batch++) {
    await Promise.all(bodies(BATCH_RECORDS).map((body) => oneByOne.append(body)))
  }
  const rows = new Rows()
  await rows.addBatches(batchCount, () => bodies(BATCH_RECORDS))
  const theirs = async () => expectBytes(await rows.readAll(), count)
  const result: Row[] = []
  const unit = { each: 'a record', count }
  for (const [how, stream, atLeast] of [
    ['appended in batches of 1,000', inBatches, 5],
    ['appended one by one', oneByOne, undefined],
  ] as const) {
    const ours = async () => expectBytes(await readAll(stream, count), count)
    const rounds = await compare(bench.rounds * 3, () => timed(ours), { dexie: () => timed(theirs) })
    const work = `read ${count.toLocaleString('en')} × 256 B in order, ${how}`
    result.push(speedRow(work, 'Dexie, `orderBy`, `toArray`', rounds.dexie, atLeast, unit))
  }
  await headwater.close()
  await rows.delete()
  return result
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

/** A new one each time. */
function streamOf(headwater: Headwater, name: string): Stream {
  return headwater.basin('bench').stream(`${name}/${crypto.randomUUID()}`)
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

async function readAll(stream: Stream, count: number): Promise<number> {
  let bytes = 0
  for await (const batch of stream.read({ seqNum: 0, count })) {
    for (const { body } of batch.records) bytes += body.length
  }
  return bytes
}

function expectBytes(bytes: number, count: number): void {
  if (bytes !== count * BODY_BYTES) throw new Error(`${bytes} bytes were read of ${count * BODY_BYTES}`)
}

function scaled(count: number, { scale }: Bench): number {
  return Math.max(1, Math.round(count * scale))
}

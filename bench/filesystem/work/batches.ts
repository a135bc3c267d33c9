import { compare, timed } from '../../harness/compare.ts'
import { type Row, speedRow } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { BODY_BYTES, bodiesFrom, timestampOf } from '../harness/records.ts'
import { writeAndSync } from '../rivals/bare-file.ts'
import { openLevel, putsOf } from '../rivals/level.ts'
import { openSqlite } from '../rivals/sqlite.ts'

const BATCHES = 200
const BATCH_RECORDS = 1_000

/** Batch after batch, each awaited. The bare file, for information, says how much of a ratio the disk leaves to whoever syncs each batch. */
export async function batches(bench: Bench): Promise<Row[]> {
  const count = scaled(BATCHES, bench)
  const { scratch, rounds } = bench
  const { level, sqlite, bare } = await compare(
    rounds,
    () => scratch.during((directory) => append(directory, count)),
    {
      level: () => scratch.during((directory) => putBatches(directory, count)),
      sqlite: () => scratch.during((directory) => insert(directory, count)),
      bare: () => scratch.during((directory) => writeAndSync(directory, count, batchBytes())),
    },
  )
  const work = 'batches of 1,000 × 1 KiB'
  const unit = { each: 'a batch', count }
  return [
    speedRow(work, '`classic-level`, `batch` with `sync`', level, 4, unit),
    speedRow(work, '`better-sqlite3`, WAL, `synchronous=FULL`, a transaction each', sqlite, 6, unit),
    speedRow(work, 'a bare loop of `FileHandle.write` + `datasync`', bare, undefined, unit),
  ]
}

async function append(directory: string, count: number): Promise<number> {
  const headwater = await openHeadwater(directory)
  const stream = streamNumber(headwater, 0)
  // The first one makes basin, stream and journal.
  await stream.append('')
  const time = await timed(async () => {
    for (let batch = 0; batch < count; batch++) {
      await stream.append(bodiesFrom(batch * BATCH_RECORDS, BATCH_RECORDS))
    }
  })
  await headwater.close()
  return time
}

function batchBytes(): Uint8Array {
  const bytes = new Uint8Array(BATCH_RECORDS * BODY_BYTES)
  for (const [index, body] of bodiesFrom(0, BATCH_RECORDS).entries()) bytes.set(body, index * BODY_BYTES)
  return bytes
}

async function putBatches(directory: string, count: number): Promise<number> {
  const level = await openLevel(directory)
  const time = await timed(async () => {
    for (let batch = 0; batch < count; batch++) {
      const first = batch * BATCH_RECORDS
      await level.batch(putsOf(first, bodiesFrom(first, BATCH_RECORDS)), { sync: true })
    }
  })
  await level.close()
  return time
}

async function insert(directory: string, count: number): Promise<number> {
  const sqlite = openSqlite(directory, { indexed: false, timestampOf })
  const time = await timed(async () => {
    for (let batch = 0; batch < count; batch++) {
      const first = batch * BATCH_RECORDS
      sqlite.append({ first, bodies: bodiesFrom(first, BATCH_RECORDS) })
    }
  })
  sqlite.close()
  return time
}

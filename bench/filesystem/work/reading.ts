import { compare, timed } from '../../harness/compare.ts'
import { type Row, speedRow } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { fillHeadwater, fillLevel, fillSqlite } from '../harness/fill.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { BODY_BYTES, timestampOf } from '../harness/records.ts'
import { iterate, openLevel } from '../rivals/level.ts'
import { openSqlite, type SqliteLog } from '../rivals/sqlite.ts'
import { seeks } from './seeking.ts'

const RECORDS = 1_000_000
const PAGE_RECORDS = 1_000

/** All records in order, and single ones by time, of one store on each side that was closed and opened again. */
export async function reading(bench: Bench): Promise<Row[]> {
  const { scratch } = bench
  const count = scaled(RECORDS, bench)
  const [ours, levels, sqlites] = [await scratch.fresh(), await scratch.fresh(), await scratch.fresh()]
  await fillHeadwater(ours, count)
  await fillLevel(levels, count)
  fillSqlite(sqlites, count)

  const headwater = await openHeadwater(ours)
  const level = await openLevel(levels)
  const sqlite = openSqlite(sqlites, { indexed: true, timestampOf })
  const stream = streamNumber(headwater, 0)
  const rounds = await compare(bench.rounds, () => readingAll(count, () => readStream(stream, count)), {
    level: () => readingAll(count, () => readLevel(level)),
    sqlite: () => readingAll(count, () => readSqlite(sqlite)),
  })
  const work = `read ${count.toLocaleString('en')} × 1 KiB in order`
  const unit = { each: 'a record', count }
  const rows = [
    speedRow(work, '`classic-level`, `nextv(1000)`', rounds.level, 3, unit),
    speedRow(work, '`better-sqlite3`, pages of 1,000', rounds.sqlite, 3, unit),
    ...(await seeks(bench, { stream, sqlite, count })),
  ]
  await headwater.close()
  await level.close()
  sqlite.close()
  return rows
}

type OurStream = ReturnType<typeof streamNumber>
type OurLevel = Awaited<ReturnType<typeof openLevel>>

/** Time of a reading, which has to see all bytes of all bodies. */
async function readingAll(count: number, read: () => Promise<number>): Promise<number> {
  let bytes = 0
  const time = await timed(async () => {
    bytes = await read()
  })
  if (bytes !== count * BODY_BYTES) throw new Error(`${bytes} bytes were read of ${count * BODY_BYTES}`)
  return time
}

async function readStream(stream: OurStream, count: number): Promise<number> {
  let bytes = 0
  for await (const batch of stream.read({ seqNum: 0, count })) {
    for (const { body } of batch.records) bytes += body.length
  }
  return bytes
}

async function readLevel(level: OurLevel): Promise<number> {
  let bytes = 0
  const iterator = iterate(level)
  for (;;) {
    const entries = await iterator.nextv(PAGE_RECORDS)
    if (entries.length === 0) break
    for (const [, body] of entries) bytes += body.length
  }
  await iterator.close()
  return bytes
}

async function readSqlite(sqlite: SqliteLog): Promise<number> {
  let bytes = 0
  for (let next = 0; ; ) {
    const rows = sqlite.page(next, PAGE_RECORDS)
    if (rows.length === 0) return bytes
    for (const [, body] of rows) bytes += body.length
    next = rows.at(-1)![0] + 1
  }
}

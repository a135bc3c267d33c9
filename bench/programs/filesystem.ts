import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import Database from 'better-sqlite3'
import { openHeadwater, openOnSqlite, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, bodyOf, timestampOf } from '../harness/records.ts'
import { keyOf, openLevel, putsOf } from '../rivals/level.ts'
import { openSqlite } from '../rivals/sqlite.ts'

const BATCH_RECORDS = 1_000
/** Concurrent writers, each with a stream of its own. */
const WRITERS = 64

interface Place {
  readonly directory: string
  readonly size: number
}

interface Batch {
  readonly records: number
}

host({
  headwater: ({ records, ...place }: Place & Batch) =>
    afresh(place, async (directory) => {
      const headwater = await openHeadwater(directory)
      const stream = streamNumber(headwater, 0)
      // The first append creates basin, stream and journal.
      await stream.append('')
      return {
        async turn(count) {
          for (let i = 0; i < count; i++) await stream.append(bodiesFrom(i * records, records))
        },
        close: () => headwater.close(),
      }
    }),
  bare: ({ records, ...place }: Place & Batch) =>
    afresh(place, (directory) => writeAndSync(directory, records)),
  'bare checked': (place: Place) => afresh(place, writeChecked),
  'level batches': (place: Place) =>
    afresh(place, async (directory) => {
      const level = await openLevel(directory)
      return {
        async turn(count) {
          for (let first = 0; first < count * BATCH_RECORDS; first += BATCH_RECORDS) {
            await level.batch(putsOf(first, bodiesFrom(first, BATCH_RECORDS)), { sync: true })
          }
        },
        close: () => level.close(),
      }
    }),
  'sqlite batches': (place: Place) =>
    afresh(place, async (directory) => {
      const sqlite = openSqlite(directory, timestampOf)
      return {
        turn(count) {
          for (let first = 0; first < count * BATCH_RECORDS; first += BATCH_RECORDS) {
            sqlite.append({ first, bodies: bodiesFrom(first, BATCH_RECORDS) })
          }
        },
        close: () => sqlite.close(),
      }
    }),
  'headwater writers': ({ onSqlite, ...place }: Place & { readonly onSqlite?: boolean }) =>
    afresh(place, async (directory) => {
      const headwater = await (onSqlite
        ? openOnSqlite(new Database(join(directory, 'streams.db')))
        : openHeadwater(directory))
      const streams = Array.from({ length: WRITERS }, (_, writer) => streamNumber(headwater, writer))
      await Promise.all(streams.map((stream) => stream.append(bodyOf(0))))
      return {
        turn: (count) => writeAtOnce(count, (writer, index) => streams[writer]!.append(bodyOf(index))),
        close: () => headwater.close(),
      }
    }),
  'level writers': (place: Place) =>
    afresh(place, async (directory) => {
      const level = await openLevel(directory)
      return {
        turn: (count) =>
          writeAtOnce(count, (writer, seqNum) =>
            level.put(keyOf(writer, seqNum), bodyOf(seqNum), { sync: true }),
          ),
        close: () => level.close(),
      }
    }),
})

/** Gives every turn a new directory, so that none pays for the compaction of another. */
async function afresh(
  { directory }: Place,
  open: (directory: string) => Promise<Prepared>,
): Promise<Prepared> {
  let current: Prepared | undefined
  let at = directory
  const close = async () => {
    await current?.close?.()
    rmSync(at, { recursive: true })
  }
  return {
    async reset() {
      if (current !== undefined) await close()
      at = mkdtempSync(join(directory, 'turn-'))
      current = await open(at)
    },
    turn: (count) => current!.turn!(count),
    close,
  }
}

/** The minimum that makes bytes durable: appends each batch to a file and syncs it. */
async function writeAndSync(directory: string, records: number): Promise<Prepared> {
  const file = await open(join(directory, 'log'), 'w')
  const batch = Buffer.concat(bodiesFrom(0, records))
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) {
        await file.write(batch, 0, batch.length, i * batch.length)
        await file.datasync()
      }
    },
    close: () => file.close(),
  }
}

/** What each storage does that keeps bytes of its own and can verify them: copies, sums, writes, syncs. */
async function writeChecked(directory: string): Promise<Prepared> {
  const file = await open(join(directory, 'log'), 'w')
  let position = 0
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) {
        const batch = Buffer.concat(bodiesFrom(i * BATCH_RECORDS, BATCH_RECORDS))
        const sum = Buffer.alloc(4)
        sum.writeUInt32LE(crc32(batch))
        await file.writev([sum, batch], position)
        await file.datasync()
        position += sum.length + batch.length
      }
    },
    close: () => file.close(),
  }
}

async function writeAtOnce(
  count: number,
  write: (writer: number, index: number) => Promise<unknown>,
): Promise<number> {
  const each = Math.ceil(count / WRITERS)
  const writeEach = async (writer: number) => {
    for (let index = 0; index < each; index++) await write(writer, index)
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => writeEach(writer)))
  return each * WRITERS
}

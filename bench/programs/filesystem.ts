import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { BODY_BYTES, bodiesFrom, bodyOf, timestampOf } from '../harness/records.ts'
import { iterate, keyOf, openLevel, putsOf } from '../rivals/level.ts'
import { openSqlite } from '../rivals/sqlite.ts'

const BATCH_RECORDS = 1_000
const PAGE_RECORDS = 1_000
/** Concurrent writers, each with a stream of its own. */
const WRITERS = 64
/** A prime, whose multiples visit all of any million positions without a pattern. */
const STRIDE = 611_953

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
      const sqlite = openSqlite(directory, { indexed: false, timestampOf })
      return {
        turn(count) {
          for (let first = 0; first < count * BATCH_RECORDS; first += BATCH_RECORDS) {
            sqlite.append({ first, bodies: bodiesFrom(first, BATCH_RECORDS) })
          }
        },
        close: () => sqlite.close(),
      }
    }),
  'headwater writers': (place: Place) =>
    afresh(place, async (directory) => {
      const headwater = await openHeadwater(directory)
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

  async 'headwater reading'(place: Place) {
    const { stream, close } = await filledHeadwater(place)
    return {
      turn: () =>
        readAll(place.size, async (use) => {
          const session = stream.read({ seqNum: 0, count: place.size }, { as: 'bytes' })
          for await (const batch of session.batches()) for (const { body } of batch.records) use(body)
        }),
      close,
    }
  },
  /** Reads a file in pieces of 1 MiB, each with a checksum, of records whose length is known. */
  async 'checked reading'({ directory, size }: Place) {
    const file = await open(join(directory, 'log'), 'w+')
    const sums: number[] = []
    for (let first = 0; first < size; first += BATCH_RECORDS) {
      const batch = Buffer.concat(bodiesFrom(first, Math.min(BATCH_RECORDS, size - first)))
      sums.push(crc32(batch))
      await file.write(batch)
    }
    const pieceBytes = BATCH_RECORDS * BODY_BYTES
    return {
      turn: () =>
        readAll(size, async (use) => {
          const read = (piece: number) =>
            file.read(Buffer.allocUnsafeSlow(pieceBytes), 0, pieceBytes, piece * pieceBytes)
          let next = read(0)
          for (let piece = 0; piece < sums.length; piece++) {
            const { buffer, bytesRead } = await next
            next = read(piece + 1)
            const batch = buffer.subarray(0, bytesRead)
            if (crc32(batch) !== sums[piece]) throw new Error(`piece ${piece} is damaged`)
            for (let at = 0; at < bytesRead; at += BODY_BYTES) use(batch.subarray(at, at + BODY_BYTES))
          }
          await next
        }),
      close: () => file.close(),
    }
  },
  async 'level reading'({ directory, size }: Place) {
    const level = await openLevel(directory)
    for (let first = 0; first < size; first += BATCH_RECORDS) {
      await level.batch(putsOf(first, bodiesFrom(first, BATCH_RECORDS)), { sync: false })
    }
    return {
      turn: () =>
        readAll(size, async (use) => {
          const iterator = iterate(level)
          for (;;) {
            const entries = await iterator.nextv(PAGE_RECORDS)
            if (entries.length === 0) break
            for (const [, body] of entries) use(body)
          }
          await iterator.close()
        }),
      close: () => level.close(),
    }
  },
  'sqlite reading'(place: Place) {
    const sqlite = filledSqlite(place)
    return {
      turn: () =>
        readAll(place.size, (use) => {
          for (let next = 0; ; ) {
            const rows = sqlite.page(next, PAGE_RECORDS)
            if (rows.length === 0) return
            for (const [, body] of rows) use(body)
            next = rows.at(-1)![0] + 1
          }
        }),
      close: () => sqlite.close(),
    }
  },

  async 'headwater seeking'({ by, records, ...place }: Place & Seek) {
    const { stream, close } = await filledHeadwater(place)
    return {
      async turn(count) {
        for (let i = 0; i < count; i++) {
          const target = (i * STRIDE) % place.size
          const start = by === 'timestamp' ? { timestamp: timestampOf(target) } : { seqNum: target }
          const batch = await stream.readBatch({ ...start, count: records }, { as: 'bytes' })
          expectFirst(batch.records[0]?.seqNum, target)
        }
      },
      close,
    }
  },
  'sqlite seeking'({ by, records, ...place }: Place & Seek) {
    const sqlite = filledSqlite(place)
    return {
      turn(count) {
        for (let i = 0; i < count; i++) {
          const target = (i * STRIDE) % place.size
          const page =
            by === 'timestamp' ? sqlite.pageFrom(timestampOf(target), records) : sqlite.page(target, records)
          expectFirst(page[0]?.[0], target)
        }
      },
      close: () => sqlite.close(),
    }
  },
})

interface Seek {
  readonly by: 'timestamp' | 'seqNum'
  /** The length of the page to read. */
  readonly records: number
}

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

/** A store that was filled in batches, closed and opened again. */
async function filledHeadwater({ directory, size }: Place) {
  const filling = await openHeadwater(directory)
  for (let first = 0; first < size; first += BATCH_RECORDS) {
    const records = bodiesFrom(first, BATCH_RECORDS).map((body, index) => ({
      body,
      timestamp: timestampOf(first + index),
    }))
    await streamNumber(filling, 0).append(records)
  }
  await filling.close()
  const headwater = await openHeadwater(directory)
  return { stream: streamNumber(headwater, 0), close: () => headwater.close() }
}

function filledSqlite({ directory, size }: Place) {
  const sqlite = openSqlite(directory, { indexed: true, timestampOf })
  for (let first = 0; first < size; first += BATCH_RECORDS) {
    sqlite.append({ first, bodies: bodiesFrom(first, BATCH_RECORDS) })
  }
  return sqlite
}

async function readAll(
  size: number,
  read: (use: (body: Uint8Array) => void) => Promise<void> | void,
): Promise<number> {
  let bytes = 0
  await read((body) => {
    bytes += body.length
  })
  if (bytes !== size * BODY_BYTES) throw new Error(`read ${bytes} bytes instead of ${size * BODY_BYTES}`)
  return size
}

function expectFirst(found: number | undefined, wanted: number): void {
  if (found !== wanted) throw new Error(`found record ${found} instead of ${wanted}`)
}

import { readdirSync } from 'node:fs'
import type { Stream } from '../../src/index.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, bodyOf } from '../harness/records.ts'

/** Concurrent appends. */
const IN_FLIGHT = 256
const RECORDS_EACH = 3
const SMALL_BODY_BYTES = 8
/** A prime, whose multiples visit all streams without a pattern. */
const STRIDE = 611_953

host({
  /** Fills the directory, which another process opens. */
  async 'fill streams'({ directory, size }: { directory: string; size: number }) {
    const headwater = await openHeadwater(directory)
    await atOnce(size, (number) => streamNumber(headwater, number).append(bodiesFrom(number, RECORDS_EACH)))
    await headwater.close()
    return {}
  },

  async open({ directory }: { directory: string }) {
    if (readdirSync(directory).length === 0) throw new Error(`${directory} is empty`)
    // Loads the code, whose time and memory do not depend on the streams.
    await (await openHeadwater()).close()
    let headwater: Awaited<ReturnType<typeof openHeadwater>>
    return {
      async turn() {
        headwater = await openHeadwater(directory)
      },
      close: () => headwater.close(),
    }
  },

  /** Appends to one stream, which holds this many records before. */
  async grown({
    directory,
    onDisk = false,
    records,
  }: {
    directory: string
    onDisk?: boolean
    records: number
  }) {
    const headwater = await openHeadwater(onDisk ? directory : undefined)
    const stream = streamNumber(headwater, 0)
    const batch = bodiesFrom(0, 1_000, SMALL_BODY_BYTES)
    for (let first = 0; first < records; first += batch.length) await stream.append(batch)
    return appending([stream], () => headwater.close())
  },

  /** Appends to `streams` streams in turn. */
  async 'many streams'({ streams: count }: { streams: number }) {
    const headwater = await openHeadwater()
    const streams = Array.from({ length: count }, (_, number) => streamNumber(headwater, number))
    await atOnce(count, (number) => streams[number]!.append(bodyOf(number)))
    return appending(streams, () => headwater.close())
  },

  /** Fills the directory with streams of one record. */
  async 'fill small'({ directory, size }: { directory: string; size: number }) {
    const headwater = await openHeadwater(directory)
    await atOnce(size, (number) => streamNumber(headwater, number).append(bodyOf(number, SMALL_BODY_BYTES)))
    await headwater.close()
    return {}
  },

  /** Appends to the first `streams` streams of a filled directory in turn, to all by default. */
  async 'filled streams'({
    directory,
    size,
    streams: count = size,
  }: {
    directory: string
    size: number
    streams?: number
  }) {
    const headwater = await openHeadwater(directory)
    let next = 0
    return {
      async turn(turns) {
        for (let i = 0; i < turns; i++) {
          next = (next + STRIDE) % count
          await streamNumber(headwater, next).append(bodyOf(i))
        }
      },
      close: () => headwater.close(),
    }
  },

  /** Lists 1,000 streams of a filled directory by a prefix that differs each time. */
  async 'list streams'({ directory }: { directory: string }) {
    const headwater = await openHeadwater(directory)
    let next = 0
    return {
      async turn(turns) {
        for (let i = 0; i < turns; i++) {
          next = (next + STRIDE) % 9
          const query = { prefix: `streams/${1 + next}`, limit: 1000 }
          const { items } = await headwater.basin('my-basin').listStreams(query)
          if (items.length !== 1000) throw new Error(`${items.length} streams were listed`)
        }
      },
      close: () => headwater.close(),
    }
  },

  /** Holds so many bytes for each stream, as a limit for memory. */
  async 'hold bytes'({ size, bytes }: { size: number; bytes: number }) {
    const held: Buffer[] = []
    return {
      async turn() {
        held.push(Buffer.alloc(size * bytes, 1))
      },
      close: () => held.splice(0),
    }
  },

  async 'create streams'() {
    let headwater = await openHeadwater()
    return {
      async reset() {
        await headwater.close()
        headwater = await openHeadwater()
        await headwater.ensureBasin('my-basin')
      },
      turn: (count) => atOnce(count, (number) => streamNumber(headwater, number).append(bodyOf(number))),
      close: () => headwater.close(),
    }
  },
})

function appending(streams: readonly Stream[], close: () => unknown): Prepared {
  let next = 0
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) {
        next = (next + STRIDE) % streams.length
        await streams[next]!.append(bodyOf(i))
      }
    },
    close,
  }
}

/** Runs `work` for the numbers below `count`, many at a time. */
async function atOnce(count: number, work: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async () => {
    for (let number = next++; number < count; number = next++) await work(number)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, run))
}

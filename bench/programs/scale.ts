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

  async 'idle streams'() {
    // Loads the code, whose memory does not depend on the streams.
    const few = await openHeadwater()
    await streamNumber(few, 0).append(bodyOf(0, SMALL_BODY_BYTES))
    await few.close()
    const headwater = await openHeadwater()
    return {
      turn: (count) =>
        atOnce(count, (number) => streamNumber(headwater, number).append(bodyOf(number, SMALL_BODY_BYTES))),
      close: () => headwater.close(),
    }
  },

  /** Keeps so many bytes a unit. */
  async bytes({ bytesEach }: { bytesEach: number }) {
    let kept = new Uint8Array()
    return {
      async turn(count) {
        kept = new Uint8Array(count * bytesEach).fill(1)
      },
      close: () => kept.fill(0),
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

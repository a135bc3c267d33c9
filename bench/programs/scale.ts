import { readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Stream } from '../../src/index.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, bodyOf } from '../harness/records.ts'

/** Concurrent appends. */
const IN_FLIGHT = 256
const RECORDS_EACH = 3
const SMALL_BODY_BYTES = 8
const EXPIRY_MS = 20_000
/** How long work in the background is waited for: trims are completed after 10 s. */
const AFTERMATH_MS = 12_000
type BulkChange = 'delete' | 'trim' | 'expire'
/** More than 1,000 documents take in a checkpoint, and where the first of them are read. */
const LIST_BYTES = 512 * 1024
const FIRST_LIST_OFFSET = 1_048_576
const PAGE_BYTES = 8 * 1024
const DOCUMENT_START = '{"basin"'
const DOCUMENT_END = '"creationKey":null}'
/** What `bare slab` overwrites again and again. */
const SLAB_BYTES = 256 * 1024 * 1024
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
    // The second append counts as use: after it, the engine keeps the stream.
    for (let round = 0; round < 2; round++)
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
    // Loads the code, whose time does not depend on the streams.
    const few = await openHeadwater()
    await streamNumber(few, 0).append(bodyOf(0, SMALL_BODY_BYTES))
    await few.basin('my-basin').listStreams({ prefix: 'streams/' })
    await few.close()
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

  /** Reads 1,000 documents of a filled directory, and does only what a list cannot do without. */
  async 'bare list'({ directory }: { directory: string }) {
    const name = readdirSync(directory).find((file) => /^checkpoint-\d+$/.test(file))
    if (name === undefined) throw new Error(`${directory} has no checkpoint`)
    const file = await open(join(directory, name), 'r')
    const lists: { readonly offset: number; readonly places: readonly (readonly [number, number])[] }[] = []
    const content = Buffer.alloc(2 * LIST_BYTES)
    for (let list = 0; list < 9; list++) {
      const offset = FIRST_LIST_OFFSET + list * content.length
      await file.read(content, 0, content.length, offset)
      const places: (readonly [number, number])[] = []
      for (let end = 0; places.length < 1_000; ) {
        const start = content.indexOf(DOCUMENT_START, end)
        end = content.indexOf(DOCUMENT_END, start) + DOCUMENT_END.length
        if (start < 0 || end < start) throw new Error('a document was not found')
        places.push([start, end])
      }
      lists.push({ offset, places })
    }
    let next = 0
    return {
      async turn(turns) {
        for (let i = 0; i < turns; i++) {
          const { offset, places } = lists[next++ % lists.length]!
          const bytes = Buffer.allocUnsafeSlow(places.at(-1)![1])
          await file.read(bytes, 0, bytes.length, offset)
          for (let page = 0; page < bytes.length; page += PAGE_BYTES) {
            crc32(bytes.subarray(page, page + PAGE_BYTES))
          }
          const found = places.map(([start, end]) => JSON.parse(bytes.toString('utf8', start, end)))
          if (found.length !== 1_000) throw new Error(`${found.length} documents were read`)
        }
      },
      close: () => file.close(),
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

  /** Copies into one of `streams` arrays in turn: what the process itself permits. */
  'bare copies'({ streams: count }: { streams: number }) {
    const names = Array.from({ length: count }, (_, number) => `streams/${number}`)
    const copies = new Map(names.map((name, number) => [name, [new Uint8Array(bodyOf(number))]]))
    const append = async (name: string, body: Uint8Array) => {
      copies.get(name)!.push(new Uint8Array(body))
    }
    return appendingBare(names, append)
  },

  /** Copies into one buffer, and keeps numbers of `streams` names in typed arrays: no garbage collection. */
  'bare slab'({ streams: count }: { streams: number }) {
    const names = Array.from({ length: count }, (_, number) => `streams/${number}`)
    const numbers = new Map(names.map((name, number) => [name, number]))
    const [tails, times, places] = [0, 0, 0].map(() => new Float64Array(count).fill(1))
    const slab = new Uint8Array(SLAB_BYTES).fill(1)
    let end = 0
    const append = async (name: string, body: Uint8Array) => {
      const number = numbers.get(name)!
      if (end + body.length > slab.length) end = 0
      slab.set(body, end)
      tails![number]!++
      times![number] = Date.now()
      places![number] = end
      end += body.length
    }
    return appendingBare(names, append)
  },

  /** The longest time that an append waits while something happens to all other streams at once. */
  async bulk({ size, change }: { size: number; change: BulkChange }) {
    const headwater = await openHeadwater()
    const others = headwater.basin('others')
    const retentionPolicy = { ageSeconds: EXPIRY_MS / 1_000 }
    const defaultStreamConfig = change === 'expire' ? { retentionPolicy } : {}
    await headwater.ensureBasin('others', { defaultStreamConfig, createStreamOnAppend: true })
    const streamOf = (number: number) => others.stream(`streams/${number}`)
    await atOnce(size, (number) => streamOf(number).append(bodyOf(number)))
    const filledAt = performance.now()
    const appended = streamNumber(headwater, 0)
    await appended.append(bodyOf(0))
    return {
      async turn() {
        const before = process.memoryUsage.rss()
        const waits = appendsInRhythm(() => appended.append(bodyOf(0)))
        if (change === 'delete') await others.delete()
        // As requests arrive: each batch with others between.
        for (let first = 0; change === 'trim' && first < size; first += IN_FLIGHT) {
          const numbers = Array.from({ length: IN_FLIGHT }, (_, index) => first + index)
          await Promise.all(numbers.map((number) => streamOf(number % size).trim(1)))
          await setImmediate()
        }
        const rest = change === 'expire' ? filledAt + EXPIRY_MS - performance.now() : 0
        await setTimeout(rest + AFTERMATH_MS)
        const { longestMs, peakBytes } = await waits.stop()
        if (peakBytes > 2 * before) throw new Error(`memory grew from ${before} to ${peakBytes} bytes`)
        return { wallMs: longestMs, units: 1 }
      },
      close: () => headwater.close(),
    }
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

function appendingBare(
  names: readonly string[],
  append: (name: string, body: Uint8Array) => Promise<unknown>,
): Prepared {
  let next = 0
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) {
        next = (next + STRIDE) % names.length
        await append(names[next]!, bodyOf(i))
      }
    },
  }
}

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

/** Appends every two milliseconds. An append that begins late has waited since its time. */
function appendsInRhythm(append: () => Promise<unknown>) {
  const periodMs = 2
  let [longestMs, peakBytes, isStopped] = [0, 0, false]
  const run = async () => {
    for (let due = performance.now(); !isStopped; due = Math.max(due + periodMs, performance.now())) {
      await setTimeout(due - performance.now())
      await append()
      longestMs = Math.max(longestMs, performance.now() - due - periodMs)
      peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
    }
  }
  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
      return { longestMs, peakBytes }
    },
  }
}

import { concatAll, Subject } from 'rxjs'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'
import { bodiesFrom, bodyOf } from '../harness/records.ts'

interface PlainRecord {
  readonly seqNum: number
  readonly timestamp: number
  readonly headers: readonly never[]
  readonly body: Uint8Array
}

interface Shape {
  readonly records: number
  readonly bytes: number
}

interface Followed extends Shape {
  readonly followers: number
}

/** A stride that visits all positions of a million without a pattern. */
const STRIDE = 611_953
/** Concurrent appends of a writer. */
const IN_FLIGHT = 100

host({
  async headwater({ records, bytes }: Shape) {
    const bodies = bodiesFrom(0, records, bytes)
    let headwater = await openHeadwater()
    return {
      async reset() {
        // Records that are no longer needed would only cost garbage collections.
        await headwater.close()
        headwater = await openHeadwater()
        await streamNumber(headwater, 0).append(bodies)
      },
      async turn(count) {
        const stream = streamNumber(headwater, 0)
        for (let i = 0; i < count; i++) await stream.append(records === 1 ? bodies[0]! : bodies)
      },
    }
  },

  'awaited array'({ bytes }: Shape) {
    const bodies = [bodyOf(0, bytes)]
    let log: PlainRecord[] = []
    const append = async () => pushAll(log, bodies)
    return {
      reset() {
        log = []
      },
      async turn(count) {
        for (let i = 0; i < count; i++) await append()
      },
    }
  },

  async 'headwater followed'({ records, bytes, followers }: Followed) {
    const bodies = bodiesFrom(0, records, bytes)
    let headwater = await openHeadwater()
    let deliveries = new Deliveries()
    return {
      async reset() {
        await headwater.close()
        headwater = await openHeadwater()
        deliveries = new Deliveries()
        const stream = streamNumber(headwater, 0)
        // Creates the stream: a follower of a missing one fails.
        await stream.append('')
        for (let i = 0; i < followers; i++) {
          const { records$ } = stream.follow({ seqNum: 0 }, { as: 'bytes' })
          // Closing the engine ends the sessions with an error.
          records$.subscribe({ next: deliveries.add, error: () => {} })
        }
        // Followers that have received a batch follow live, as the subscribers of a subject do at once.
        const areLive = deliveries.expect(records * followers)
        await stream.append(bodies)
        await areLive
      },
      async turn(count) {
        const stream = streamNumber(headwater, 0)
        const delivered = deliveries.expect(count * records * followers)
        for (let i = 0; i < count; i += IN_FLIGHT) {
          const appends = Math.min(IN_FLIGHT, count - i)
          await Promise.all(Array.from({ length: appends }, () => stream.append(bodies)))
        }
        await delivered
        return count * records * followers
      },
    }
  },

  'subject followed'({ records, bytes, followers }: Followed) {
    const bodies = bodiesFrom(0, records, bytes)
    let subject = new Subject<readonly PlainRecord[]>()
    let deliveries = new Deliveries()
    return {
      reset() {
        subject = new Subject()
        deliveries = new Deliveries()
        for (let i = 0; i < followers; i++) subject.pipe(concatAll()).subscribe(deliveries.add)
      },
      async turn(count) {
        const delivered = deliveries.expect(count * records * followers)
        let seqNum = 0
        for (let i = 0; i < count; i++) {
          const timestamp = Date.now()
          subject.next(bodies.map((body) => ({ seqNum: seqNum++, timestamp, headers: [], body })))
        }
        await delivered
        return count * records * followers
      },
    }
  },

  /** Keeps each batch as a block, and delivers records in memory of their own, as headwater does. */
  'copies followed'({ records, bytes, followers }: Followed) {
    const bodies = bodiesFrom(0, records, bytes)
    let kept: Uint8Array[] = []
    let subject = new Subject<readonly PlainRecord[]>()
    let deliveries = new Deliveries()
    return {
      reset() {
        kept = []
        subject = new Subject()
        deliveries = new Deliveries()
        for (let i = 0; i < followers; i++) subject.pipe(concatAll()).subscribe(deliveries.add)
      },
      async turn(count) {
        const delivered = deliveries.expect(count * records * followers)
        let seqNum = 0
        for (let i = 0; i < count; i++) {
          const timestamp = Date.now()
          const block = new Uint8Array(records * bytes)
          for (const [index, body] of bodies.entries()) block.set(body, index * bytes)
          kept.push(block)
          const copy = block.slice()
          subject.next(
            bodies.map((_, index) => ({
              seqNum: seqNum++,
              timestamp,
              headers: [],
              body: copy.subarray(index * bytes, (index + 1) * bytes),
            })),
          )
          // As after an awaited append.
          await undefined
        }
        await delivered
        return count * records * followers
      },
    }
  },

  async 'headwater random read'({ size, bytes }: { size: number; bytes: number }) {
    const stream = streamNumber(await openHeadwater(), 0)
    for (let first = 0; first < size; first += 1_000) await stream.append(bodiesFrom(first, 1_000, bytes))
    return {
      async turn(count) {
        for (let i = 0; i < count; i++) {
          const seqNum = (i * STRIDE) % size
          const { records } = await stream.readBatch({ seqNum, count: 1 }, { as: 'bytes' })
          expectSeqNum(records[0]!.seqNum, seqNum)
        }
      },
    }
  },

  'array random read'({ size, bytes }: { size: number; bytes: number }) {
    const log: PlainRecord[] = []
    pushAll(log, bodiesFrom(0, size, bytes))
    const read = async (seqNum: number) => {
      const record = log[seqNum]!
      return { ...record, body: record.body.slice() }
    }
    return {
      async turn(count) {
        for (let i = 0; i < count; i++) {
          const seqNum = (i * STRIDE) % size
          expectSeqNum((await read(seqNum)).seqNum, seqNum)
        }
      },
    }
  },
})

function pushAll(log: PlainRecord[], bodies: readonly Uint8Array[]): void {
  const timestamp = Date.now()
  for (const body of bodies) log.push({ seqNum: log.length, timestamp, headers: [], body })
}

/** Counts the records that followers receive. */
class Deliveries {
  #missing = 0
  #resolve = () => {}

  /** Resolves when `count` more records have been delivered. */
  expect(count: number): Promise<void> {
    this.#missing = count
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  readonly add = ({ body }: { readonly body: Uint8Array }): void => {
    if (body.length > 0 && --this.#missing === 0) this.#resolve()
  }
}

function expectSeqNum(found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`found record ${found} instead of ${wanted}`)
}

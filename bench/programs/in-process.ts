import { concatAll, Subject } from 'rxjs'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'
import { bodiesFrom } from '../harness/records.ts'

interface PlainRecord {
  readonly seqNum: number
  readonly timestamp: number
  readonly headers: readonly never[]
  readonly body: Uint8Array
}

interface Followed {
  readonly records: number
  readonly bytes: number
  readonly followers: number
}

/** Concurrent appends of a writer. */
const IN_FLIGHT = 100

host({
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
})

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

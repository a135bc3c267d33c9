import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Follower, type LiveBatch, LiveTail } from '../../../src/engine/log/live-tail.ts'
import { ReadBatch, RecordBatch } from '../../../src/storage/record-batch.ts'

/** An append of `count` records at `firstSeqNum`. */
function live(firstSeqNum: number, count = 1, meteredBytes = 10): LiveBatch {
  const endSeqNum = firstSeqNum + count
  const tail = { seqNum: endSeqNum, timestamp: 5 }
  const summary = { count, meteredBytes, lastSeqNum: endSeqNum - 1 }
  const batch = new ReadBatch(new RecordBatch([]), summary, tail) as LiveBatch['batch']
  const data = new Uint8Array()
  const timestamps = { firstTimestamp: 5, lastTimestamp: 5 }
  const block = { firstSeqNum, endSeqNum, ...timestamps, meteredBytes, expiresAt: null, data }
  return { block, batch }
}

/** Waits for the next append, and calls back once. */
class Waiting implements Follower {
  isWaiting = true
  readonly #callback: () => void

  constructor(callback: () => void = () => {}) {
    this.#callback = callback
  }

  wake(): void {
    if (!this.isWaiting) return
    this.isWaiting = false
    this.#callback()
  }
}

/** The end of the microtasks that are queued. */
const soon = () => Promise.resolve()

function followed(limits: { batches?: number; bytes?: number } = {}): LiveTail {
  const tail = new LiveTail({
    followerLagBatches: limits.batches ?? 25,
    followerLagBytes: limits.bytes ?? 1000,
  })
  tail.follow(new Waiting())
  return tail
}

const kept = (tail: LiveTail, upTo = 50) =>
  Array.from({ length: upTo }, (_, seqNum) => seqNum).filter((seqNum) => tail.at(seqNum) !== undefined)

describe('the latest appends of a stream', () => {
  it('are found by their first sequence number, as one object for all followers', () => {
    const tail = followed()
    const batches = [live(0, 3), live(3, 1), live(4, 5)]
    for (const batch of batches) tail.publish(batch)
    expect(kept(tail)).toEqual([0, 3, 4])
    expect([0, 3, 4].map((seqNum) => tail.at(seqNum))).toEqual(batches)
    expect(tail.at(3)).toBe(batches[1])
    expect([1, 2, 5, 8, 9].map((seqNum) => tail.at(seqNum))).toEqual(new Array(5).fill(undefined))
  })

  it('are empty at first', () => {
    expect(followed().at(0)).toBeUndefined()
  })

  it('are kept up to a number of batches', () => {
    const tail = followed({ batches: 3 })
    for (let seqNum = 0; seqNum < 10; seqNum++) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([7, 8, 9])
  })

  it('are kept up to a number of bytes', () => {
    const tail = followed({ bytes: 30 })
    for (let seqNum = 0; seqNum < 10; seqNum++) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([7, 8, 9])
    tail.publish(live(10, 1, 25))
    expect(kept(tail)).toEqual([10])
  })

  it('include the newest one, however large', () => {
    const tail = followed({ bytes: 30 })
    tail.publish(live(0))
    tail.publish(live(1, 1, 99))
    expect(kept(tail)).toEqual([1])
    tail.publish(live(2))
    expect(kept(tail)).toEqual([2])
  })

  it('are published once', () => {
    const tail = followed()
    const first = live(0, 3)
    tail.publish(first)
    tail.publish(live(0, 3))
    tail.publish(live(1, 5))
    expect(tail.at(0)).toBe(first)
    expect(kept(tail)).toEqual([0])
  })

  it('restart after a gap, as do their bytes', () => {
    const tail = followed({ bytes: 30 })
    for (const seqNum of [0, 1, 2, 7, 8, 9]) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([7, 8, 9])
  })

  it('have no gap and stay within the limits', () => {
    const append = fc.record({
      gap: fc.constantFrom(0, 0, 0, 0, 1, -1),
      count: fc.integer({ min: 1, max: 3 }),
      bytes: fc.integer({ min: 1, max: 40 }),
    })
    fc.assert(
      fc.property(fc.array(append, { maxLength: 30, size: 'max' }), (appends) => {
        const tail = followed({ batches: 4, bytes: 60 })
        let end = 5
        for (const { gap, count, bytes } of appends) {
          const firstSeqNum = end + gap
          tail.publish(live(firstSeqNum, count, bytes))
          end = Math.max(end, firstSeqNum + count)
          const found = kept(tail, 150).map((seqNum) => tail.at(seqNum)!)
          found.slice(1).forEach((batch, index) => {
            expect(batch.block.firstSeqNum).toBe(found[index]!.block.endSeqNum)
          })
          const total = found.reduce((sum, { batch }) => sum + batch.meteredBytes, 0)
          expect(found.length).toBeLessThanOrEqual(4)
          expect(total <= 60 || found.length === 1).toBe(true)
        }
      }),
    )
  })
})

describe('followers', () => {
  it('are counted once each', () => {
    const tail = new LiveTail({ followerLagBatches: 25, followerLagBytes: 1000 })
    expect(tail.followers).toBe(0)
    const first = tail.follow(new Waiting())
    const second = tail.follow(new Waiting())
    expect(tail.followers).toBe(2)
    first()
    first()
    expect(tail.followers).toBe(1)
    second()
    expect(tail.followers).toBe(0)
  })

  it('make the tail keep appends as long as one is left', () => {
    const tail = new LiveTail({ followerLagBatches: 25, followerLagBytes: 1000 })
    tail.publish(live(0))
    expect(tail.at(0)).toBeUndefined()
    const first = tail.follow(new Waiting())
    const second = tail.follow(new Waiting())
    tail.publish(live(1))
    first()
    expect(tail.at(1)).toBeDefined()
    second()
    expect(tail.at(1)).toBeUndefined()
  })

  it('find no batches kept for earlier followers, and their bytes are not counted', () => {
    const tail = new LiveTail({ followerLagBatches: 25, followerLagBytes: 30 })
    const first = tail.follow(new Waiting())
    for (const seqNum of [0, 1, 2]) tail.publish(live(seqNum))
    first()
    tail.follow(new Waiting())
    for (const seqNum of [3, 4, 5]) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([3, 4, 5])
  })
})

describe('followers that wait for the next append', () => {
  it('are woken once for the appends of one turn, which can be found by then', async () => {
    const tail = followed()
    const found: (LiveBatch | undefined)[] = []
    const follower = new Waiting(() => found.push(tail.at(0), tail.at(1)))
    tail.follow(follower)
    expect(tail.waiting).toBe(2)
    const batches = [live(0), live(1)]
    for (const batch of batches) tail.publish(batch)
    expect(found).toEqual([])
    await soon()
    expect(found).toEqual(batches)
    expect(tail.waiting).toBe(0)
  })

  it('are woken without an append at once', () => {
    const tail = followed()
    let calls = 0
    tail.follow(new Waiting(() => calls++))
    tail.follow(new Waiting(() => calls++))
    tail.wake()
    tail.wake()
    expect(calls).toBe(2)
  })

  it('are not woken after they left', async () => {
    const tail = followed()
    let calls = 0
    const leave = tail.follow(new Waiting(() => calls++))
    tail.publish(live(0))
    leave()
    leave()
    expect(tail.waiting).toBe(1)
    await soon()
    expect(calls).toBe(0)
  })

  it('wait for the append after it when they wait again while they are woken', async () => {
    const tail = followed()
    let calls = 0
    const follower = new Waiting(() => {
      calls++
      follower.isWaiting = true
    })
    tail.follow(follower)
    tail.publish(live(0))
    await soon()
    expect([calls, tail.waiting]).toEqual([1, 1])
    tail.publish(live(1))
    await soon()
    expect([calls, tail.waiting]).toEqual([2, 1])
  })
})

describe('stored records that followers read', () => {
  const blocks = [new Uint8Array([1]), new Uint8Array([2])]

  it('are shared by followers that read the same blocks one after another', () => {
    const tail = followed()
    tail.follow(new Waiting())
    const records = tail.recordsOf(blocks)
    expect(tail.recordsOf([...blocks])).toBe(records)
    expect(tail.recordsOf(blocks.slice(1))).not.toBe(records)
    expect(tail.recordsOf(blocks)).not.toBe(records)
  })

  it('are not kept for a single follower', () => {
    const tail = followed()
    expect(tail.recordsOf(blocks)).not.toBe(tail.recordsOf(blocks))
  })

  it('are dropped once a follower has caught up, and without followers', () => {
    const tail = new LiveTail({ followerLagBatches: 25, followerLagBytes: 1000 })
    const followers = [tail.follow(new Waiting()), tail.follow(new Waiting())]
    const records = tail.recordsOf(blocks)
    tail.forgetRead()
    const later = tail.recordsOf(blocks)
    expect(later).not.toBe(records)
    for (const leave of followers) leave()
    expect(tail.recordsOf(blocks)).not.toBe(later)
  })
})

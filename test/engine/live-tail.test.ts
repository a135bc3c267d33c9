import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LiveBatch, LiveTail } from '../../src/engine/live-tail.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'

/** An append of `count` records at `firstSeqNum`. */
function live(firstSeqNum: number, count = 1, meteredBytes = 10): LiveBatch {
  const endSeqNum = firstSeqNum + count
  const tail = { seqNum: endSeqNum, timestamp: 5 }
  const summary = { count, meteredBytes, lastSeqNum: endSeqNum - 1 }
  const batch = new ReadBatch(RecordBatch.ofRecords([]), summary, tail) as LiveBatch['batch']
  return { firstSeqNum, endSeqNum, lastTimestamp: 5, batch }
}

function followed(limits: { batches?: number; bytes?: number } = {}): LiveTail {
  const tail = new LiveTail({ batches: limits.batches ?? 25, bytes: limits.bytes ?? 1000 })
  tail.follow()
  return tail
}

const kept = (tail: LiveTail, upTo = 50) =>
  Array.from({ length: upTo }, (_, seqNum) => seqNum).filter((seqNum) => tail.at(seqNum) !== undefined)

describe('the last appends of a stream', () => {
  it('are found by the sequence number that they begin at, the same object for all', () => {
    const tail = followed()
    const batches = [live(0, 3), live(3, 1), live(4, 5)]
    for (const batch of batches) tail.publish(batch)
    expect(kept(tail)).toEqual([0, 3, 4])
    expect([0, 3, 4].map((seqNum) => tail.at(seqNum))).toEqual(batches)
    expect(tail.at(3)).toBe(batches[1])
    expect([1, 2, 5, 8, 9].map((seqNum) => tail.at(seqNum))).toEqual(new Array(5).fill(undefined))
  })

  it('are none at the beginning', () => {
    expect(followed().at(0)).toBeUndefined()
  })

  it('are kept up to a number of batches, the newest last', () => {
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

  it('are at least one, however large', () => {
    const tail = followed({ bytes: 30 })
    tail.publish(live(0))
    tail.publish(live(1, 1, 99))
    expect(kept(tail)).toEqual([1])
    tail.publish(live(2))
    expect(kept(tail)).toEqual([2])
  })

  it('are not repeated', () => {
    const tail = followed()
    const first = live(0, 3)
    tail.publish(first)
    tail.publish(live(0, 3))
    tail.publish(live(1, 5))
    expect(tail.at(0)).toBe(first)
    expect(kept(tail)).toEqual([0])
  })

  it('begin anew behind a gap, their bytes too', () => {
    const tail = followed({ bytes: 30 })
    for (const seqNum of [0, 1, 2, 7, 8, 9]) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([7, 8, 9])
  })

  it('never have a gap, and never exceed what may be kept', () => {
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
            expect(batch.firstSeqNum).toBe(found[index]!.endSeqNum)
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
  it('are counted, each once', () => {
    const tail = new LiveTail({ batches: 25, bytes: 1000 })
    expect(tail.followers).toBe(0)
    const first = tail.follow()
    const second = tail.follow()
    expect(tail.followers).toBe(2)
    first()
    first()
    expect(tail.followers).toBe(1)
    second()
    expect(tail.followers).toBe(0)
  })

  it('are what appends are kept for, and only as long as there is one', () => {
    const tail = new LiveTail({ batches: 25, bytes: 1000 })
    tail.publish(live(0))
    expect(tail.at(0)).toBeUndefined()
    const first = tail.follow()
    const second = tail.follow()
    tail.publish(live(1))
    first()
    expect(tail.at(1)).toBeDefined()
    second()
    expect(tail.at(1)).toBeUndefined()
  })

  it('do not find what was kept for those before them, nor its bytes counted', () => {
    const tail = new LiveTail({ batches: 25, bytes: 30 })
    const first = tail.follow()
    for (const seqNum of [0, 1, 2]) tail.publish(live(seqNum))
    first()
    tail.follow()
    for (const seqNum of [3, 4, 5]) tail.publish(live(seqNum))
    expect(kept(tail)).toEqual([3, 4, 5])
  })
})

describe('those who wait for the next append', () => {
  it('are called once, when it can be found', () => {
    const tail = followed()
    const found: (LiveBatch | undefined)[] = []
    tail.onNext(() => found.push(tail.at(0)))
    expect(tail.waiting).toBe(1)
    const batch = live(0)
    tail.publish(batch)
    tail.publish(live(1))
    expect(found).toEqual([batch])
    expect(tail.waiting).toBe(0)
  })

  it('are called by a wake without an append', () => {
    const tail = new LiveTail({ batches: 25, bytes: 1000 })
    let calls = 0
    tail.onNext(() => calls++)
    tail.onNext(() => calls++)
    tail.wake()
    tail.wake()
    expect(calls).toBe(2)
  })

  it('are not called, and not kept, once they cancelled', () => {
    const tail = followed()
    let calls = 0
    const cancel = tail.onNext(() => calls++)
    cancel()
    cancel()
    expect(tail.waiting).toBe(0)
    tail.publish(live(0))
    expect(calls).toBe(0)
  })

  it('wait for the one after when they wait again while they are called', () => {
    const tail = followed()
    let calls = 0
    const again = () => {
      calls++
      tail.onNext(again)
    }
    tail.onNext(again)
    tail.publish(live(0))
    expect([calls, tail.waiting]).toEqual([1, 1])
    tail.publish(live(1))
    expect([calls, tail.waiting]).toEqual([2, 1])
  })
})

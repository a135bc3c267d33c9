import fc from 'fast-check'
import { expect, it } from 'vitest'
import { deferred } from '../../support/deferred.ts'
import { onEveryKindOfStorage, openEngine, outcomeOf, testStorage } from '../../support/index.ts'
import { wrapped } from '../../support/wrapped-storage.ts'

const query = fc.record(
  {
    count: fc.integer({ min: 0, max: 30 }),
    bytes: fc.integer({ min: 0, max: 400 }),
    until: fc.integer({ min: 0, max: 60 }),
  },
  { requiredKeys: [] },
)

const history = fc.record({
  batches: fc.array(fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 8,
  }),
  trimmed: fc.integer({ min: 0, max: 10 }),
  ageMs: fc.integer({ min: 0, max: 12_000 }),
  reads: fc.array(fc.tuple(query, fc.integer({ min: 0, max: 40 })), { minLength: 1, maxLength: 10 }),
})

onEveryKindOfStorage(() => {
  it('a batch holds the records that a session of the same limits delivers', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ batches, trimmed, ageMs, reads }) => {
        const { hw, clock } = await openEngine({ storage: testStorage() })
        const basin = hw.basin('basin')
        await basin.createStream('s', {
          retentionPolicy: { ageSeconds: 10 },
          timestamping: { mode: 'arrival' },
        })
        const stream = basin.stream('s')
        for (const sizes of batches) {
          await stream.append(sizes.map((size) => 'x'.repeat(size)))
          await clock.advance(1_500)
        }
        if (trimmed > 0) await stream.trim(trimmed)
        await clock.advance(ageMs)
        const { seqNum: end } = await stream.checkTail()
        for (const [limits, start] of reads) {
          const { until, ...others } = limits
          const at = until === undefined ? {} : { until: clock.now() - 20_000 + until * 400 }
          const bounds = { ...others, ...at, seqNum: Math.min(start, end) }
          const session = await stream.read(bounds).toArray()
          const { records, tail } = await stream.readBatch(bounds)
          expect(records).toEqual(session)
          const endsAtTail = records.at(-1)?.seqNum === end - 1
          if (records.length > 0) expect(tail?.seqNum).toBe(endsAtTail ? end : undefined)
        }
        expect(hw.stats()).toMatchObject({ openSessions: 0, readBufferBytes: 0 })
        await hw.close()
      }),
      { numRuns: 40 },
    )
  })

  it('a stream that is deleted during the request to the storage has no records', async () => {
    const gate = deferred()
    const reading = deferred()
    let holds = false
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId, range) => {
        const blocks = await session.read(logId, range)
        if (holds) {
          reading.resolve()
          await gate.promise
        }
        return blocks
      },
    }))
    const { hw } = await openEngine({ storage })
    const stream = hw.basin('basin').stream('s')
    await stream.append('a')
    holds = true
    const outcome = outcomeOf(stream.readBatch())
    await reading.promise
    holds = false
    await stream.delete()
    gate.resolve()
    expect(await outcome).toBe('stream_deleted')
    await hw.close()
  })

  it('an engine that closes during the request rejects the read', async () => {
    const gate = deferred()
    const reading = deferred()
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId, range) => {
        reading.resolve()
        await gate.promise
        return session.read(logId, range)
      },
    }))
    const { hw } = await openEngine({ storage })
    const stream = hw.basin('basin').stream('s')
    await stream.append('a')
    const outcome = outcomeOf(stream.readBatch())
    await reading.promise
    const closing = hw.close()
    gate.resolve()
    expect(await outcome).toBe('closed')
    await closing
  })
})

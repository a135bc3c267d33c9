import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type StreamState, sequence } from '../../src/core/sequence.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import type { TimestampingMode } from '../../src/model/config.ts'
import { fenceRecord, trimRecord } from '../../src/model/record.ts'

/** Small values, so that conditions hold and commands take effect often enough. */
const token = fc.constantFrom('', 'a', 'b')
const entry = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('data' as const), timestamp: fc.option(fc.nat(3000)) }),
  },
  fc.record({ kind: fc.constant('fence' as const), token }),
  fc.record({ kind: fc.constant('trim' as const), seqNum: fc.oneof(fc.nat(60), fc.maxSafeNat()) }),
)
const step = fc.record({
  entries: fc.array(entry, { minLength: 1, maxLength: 5 }),
  fencingToken: fc.option(token),
  /** Relative to the tail. */
  matchOffset: fc.option(fc.integer({ min: -1, max: 1 })),
  mode: fc.constantFrom<TimestampingMode>('client-prefer', 'client-require', 'arrival'),
  uncapped: fc.boolean(),
  now: fc.nat(2000),
})
type Entry = typeof entry extends fc.Arbitrary<infer Value> ? Value : never
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** A naive model of a stream, one record at a time. */
class NaiveStream {
  timestamps: number[] = []
  token = ''
  trimPoint = 0

  append({ entries, fencingToken, matchOffset, mode, uncapped, now }: Step): string {
    if (fencingToken !== null && fencingToken !== this.token) return 'fencing_token_mismatch'
    const count = this.timestamps.length
    if (matchOffset !== null && Math.max(0, count + matchOffset) !== count) return 'seq_num_mismatch'
    const given = entries.map((entry) => (entry.kind === 'data' ? (entry.timestamp ?? undefined) : undefined))
    if (mode === 'client-require' && given.includes(undefined)) return 'invalid'
    entries.forEach((entry, index) => {
      let timestamp = mode === 'arrival' ? now : (given[index] ?? now)
      if (!uncapped && timestamp > now) timestamp = now
      const previous = this.timestamps.at(-1) ?? 0
      const seqNum = this.timestamps.length
      this.timestamps.push(Math.max(timestamp, previous))
      if (entry.kind === 'fence') this.token = entry.token
      if (entry.kind === 'trim') this.trimPoint = Math.max(this.trimPoint, Math.min(entry.seqNum, seqNum + 1))
    })
    return 'sequenced'
  }

  get state(): StreamState {
    const tail = { seqNum: this.timestamps.length, timestamp: this.timestamps.at(-1) ?? 0 }
    return { tail, trimPoint: this.trimPoint, fencingToken: this.token }
  }
}

function inputOf(entry: Entry): RecordInput {
  if (entry.kind === 'fence') return fenceRecord(entry.token)
  if (entry.kind === 'trim') return trimRecord(entry.seqNum)
  return { body: '', timestamp: entry.timestamp ?? undefined }
}

it('any sequence of batches keeps the invariants of a stream, and agrees with a naive model', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
      const naive = new NaiveStream()
      let state = naive.state
      let seqNum = 0
      let timestamp = 0
      for (const step of steps) {
        const { fencingToken, matchOffset, mode, uncapped, now } = step
        const matchSeqNum = matchOffset === null ? undefined : Math.max(0, state.tail.seqNum + matchOffset)
        const batch = appendBatch(step.entries.map(inputOf), {
          fencingToken: fencingToken ?? undefined,
          matchSeqNum,
        })
        const before = structuredClone(state)
        const outcome = sequence(state, batch, { timestamping: { mode, uncapped }, cipher: null }, now)
        expect(state).toEqual(before)
        expect(outcome.kind === 'refused' ? outcome.error.code : outcome.kind).toBe(naive.append(step))
        if (outcome.kind === 'sequenced') {
          for (const record of outcome.records) {
            expect(record.seqNum).toBe(seqNum)
            expect(record.timestamp).toBeGreaterThanOrEqual(timestamp)
            expect(record.timestamp).toBe(naive.timestamps[seqNum])
            seqNum++
            timestamp = record.timestamp
          }
          expect(outcome.next.trimPoint).toBeGreaterThanOrEqual(state.trimPoint)
          expect(outcome.next.trimPoint).toBeLessThanOrEqual(outcome.next.tail.seqNum)
          state = outcome.next
        }
        expect(state).toEqual(naive.state)
      }
    }),
  )
})

it('a rejected batch does not change how later batches are sequenced', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20, size: 'max' }), (steps) => {
      const config = { timestamping: { mode: 'client-prefer', uncapped: true }, cipher: null } as const
      const replay = (all: Step[]) => {
        let state = new NaiveStream().state
        const accepted: Step[] = []
        const records = all.flatMap((step) => {
          const conditions = { fencingToken: step.fencingToken ?? undefined }
          const outcome = sequence(
            state,
            appendBatch(step.entries.map(inputOf), conditions),
            config,
            step.now,
          )
          if (outcome.kind !== 'sequenced') return []
          state = outcome.next
          accepted.push(step)
          return [...outcome.records]
        })
        return { state, kept: accepted, records }
      }
      const all = replay(steps)
      const replayed = replay(all.kept)
      expect(replayed.records).toEqual(all.records)
      expect(replayed.state).toEqual(all.state)
    }),
  )
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type StreamState, sequence } from '../../src/core/sequence.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import type { TimestampingMode } from '../../src/model/config.ts'
import { closeRecord, fenceRecord, trimRecord } from '../../src/model/record.ts'
import { afterAppend, EMPTY_STREAM, verdictOn } from '../campaigns/model/stream-state.ts'

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
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.oneof(fc.constant(undefined), value)
const rarely = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })
const step = fc.record({
  entries: fc.array(entry, { minLength: 1, maxLength: 5 }),
  /** Whether the stream is closed, after the entries or alone. Nothing is stored afterwards. */
  close: fc.oneof(
    { weight: 14, arbitrary: fc.constant('no') },
    { weight: 1, arbitrary: fc.constantFrom('after', 'alone', 'alone') },
  ),
  fencingToken: rarely(token),
  /** Relative to the tail. */
  matchOffset: rarely(fc.integer({ min: -1, max: 1 })),
  producer: maybe(
    fc.record({ id: fc.constantFrom('p', 'q'), epoch: fc.nat(1), seq: fc.constantFrom(0, 0, 1, 1, 2) }),
  ),
  streamSeq: rarely(fc.constantFrom('a', 'b', 'c')),
  mode: fc.constantFrom<TimestampingMode>('client-prefer', 'client-prefer', 'arrival', 'client-require'),
  uncapped: fc.boolean(),
  now: fc.nat(2000),
})
type Entry = typeof entry extends fc.Arbitrary<infer Value> ? Value : never

function inputOf(entry: Entry): RecordInput {
  if (entry.kind === 'fence') return fenceRecord(entry.token)
  if (entry.kind === 'trim') return trimRecord(entry.seqNum)
  return { body: '', timestamp: entry.timestamp ?? undefined }
}

/** The outcomes of the model. */
const OUTCOMES = [
  'already_appended',
  'duplicate',
  'fencing_token_mismatch',
  'invalid',
  'producer_fenced',
  'producer_gap',
  'seq_num_mismatch',
  'stored',
  'stream_closed',
  'stream_seq_not_increasing',
]

it('any sequence of batches keeps the invariants of a stream, and agrees with a model', () => {
  const seen = new Set<string | undefined>()
  fc.assert(
    fc.property(fc.array(step, { minLength: 25, maxLength: 35 }), (steps) => {
      let model = EMPTY_STREAM
      let timestamp = 0
      let trimPoint = 0
      let state: StreamState = { tail: { seqNum: 0, timestamp }, trimPoint, fencingToken: '' }
      for (const { close, fencingToken, matchOffset, producer, streamSeq, ...given } of steps) {
        const { mode, uncapped, now } = given
        const entries = close === 'alone' ? [] : given.entries
        const closes = close !== 'no'
        const matchSeqNum = matchOffset === undefined ? undefined : Math.max(0, model.tail + matchOffset)
        const conditions = { fencingToken, matchSeqNum, producer, streamSeq }
        const inputs = [...entries.map(inputOf), ...(closes ? [closeRecord()] : [])]
        const fence = entries.findLast(({ kind }) => kind === 'fence') as { token: string } | undefined
        const append = { conditions, count: inputs.length, fence: fence?.token, closes }

        const config = { timestamping: { mode, uncapped }, cipher: null }
        const outcome = sequence(state, appendBatch(inputs, conditions), config, now)

        const verdict = verdictOn(model, append)
        seen.add(verdict.kind === 'refused' ? verdict.error.code : verdict.kind)
        const times = inputs.map((input) => (input as { timestamp?: number }).timestamp)
        if (verdict.kind === 'refused') expect(outcome).toMatchObject(verdict)
        else if (verdict.kind === 'duplicate') {
          const { start, end } = verdict
          expect(outcome).toMatchObject({ kind: 'duplicate', start: { seqNum: start }, end: { seqNum: end } })
        } else if (mode === 'client-require' && times.includes(undefined)) {
          expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'invalid', field: 'timestamp' } })
        } else if (outcome.kind !== 'sequenced') expect(outcome).toEqual(verdict)
        else {
          const expected = times.map((given, index) => {
            const asked = mode === 'arrival' ? now : (given ?? now)
            timestamp = Math.max(timestamp, uncapped ? asked : Math.min(asked, now))
            return [model.tail + index, timestamp]
          })
          expect(outcome.records.map((record) => [record.seqNum, record.timestamp])).toEqual(expected)
          for (const { command, seqNum } of outcome.records) {
            if (command?.kind === 'trim')
              trimPoint = Math.max(trimPoint, Math.min(command.seqNum, seqNum + 1))
          }
          const { start, end, next } = outcome
          model = afterAppend(model, append, { appendedAt: now, start, end })
          expect(next).toMatchObject({
            tail: { seqNum: model.tail, timestamp },
            trimPoint,
            fencingToken: model.fencingToken,
          })
          const { producers = [], closed = false, streamSeq: last } = next.writeState ?? {}
          expect([producers, closed, last]).toEqual([model.producers, model.isClosed, model.streamSeq])
          state = next
        }
      }
    }),
  )
  expect([...seen].sort()).toEqual(OUTCOMES)
})

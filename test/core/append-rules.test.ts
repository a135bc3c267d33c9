import { describe, expect, it } from 'vitest'
import { type StreamState, sequence } from '../../src/core/sequence.ts'
import { type AppendConditions, appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { closeRecord } from '../../src/model/record.ts'

const CONFIG = { timestamping: { mode: 'arrival', uncapped: false }, cipher: null } as const
const EMPTY: StreamState = { tail: { seqNum: 0, timestamp: 0 }, trimPoint: 0, fencingToken: '' }
const DAY_MS = 86_400_000

function run(state: StreamState, conditions: AppendConditions, records: RecordInput[] = ['x'], now = 1_000) {
  return sequence(state, appendBatch(records, conditions), CONFIG, now)
}

/** The state after an append that must succeed. */
function stored(state: StreamState, conditions: AppendConditions, records?: RecordInput[], now?: number) {
  const outcome = run(state, conditions, records, now)
  if (outcome.kind === 'refused') throw outcome.error
  if (outcome.kind === 'duplicate') throw new Error('was stored before')
  return outcome.next
}

function refusal(...args: Parameters<typeof run>) {
  const outcome = run(...args)
  if (outcome.kind !== 'refused') throw new Error(`was not refused: ${outcome.kind}`)
  return outcome.error
}

const producer = (epoch: number, seq: number, id = 'p') => ({ producer: { id, epoch, seq } })

describe('1,000 producers', () => {
  let full = EMPTY
  for (let i = 0; i < 1_000; i++) full = stored(full, producer(0, 0, `p${i}`), ['x'], 1_000 + i)

  it('are known, and one more is rejected while all are in use', () => {
    expect(full.writeState?.producers).toHaveLength(1_000)
    expect(refusal(full, producer(0, 0, 'new'), ['x'], 1_000 + 7 * DAY_MS - 1).code).toBe(
      'too_many_producers',
    )
    expect(stored(full, producer(0, 1, 'p0')).writeState?.producers).toHaveLength(1_000)
  })

  it('lose the one that has not appended for the longest time, after 7 days', () => {
    const { producers } = stored(full, producer(0, 0, 'new'), ['x'], 1_000 + 7 * DAY_MS).writeState!
    expect(producers).toHaveLength(1_000)
    expect([producers![0]!.id, producers!.at(-1)!.id]).toEqual(['p1', 'new'])
  })
})

describe('a stream sequence', () => {
  it('must be greater, byte by byte', () => {
    // In UTF-16, U+FFFD would come after the surrogates of U+1F600.
    const state = stored(EMPTY, { streamSeq: '\ufffd' })
    expect(stored(state, { streamSeq: '\u{1f600}' }).writeState).toEqual({ streamSeq: '\u{1f600}' })
    for (const streamSeq of ['\ufffd', '9']) {
      expect(refusal(state, { streamSeq })).toMatchObject({
        code: 'stream_seq_not_increasing',
        streamSeq: '\ufffd',
      })
    }
  })
})

describe('a closed stream', () => {
  const closed = stored(EMPTY, {}, ['a', closeRecord()])

  it('takes no records', () => {
    expect(closed.writeState).toEqual({ closed: true })
    for (const records of [['b'], ['b', closeRecord()]]) {
      expect(refusal(closed, {}, records)).toMatchObject({ code: 'stream_closed', seqNum: 2 })
    }
  })

  it('can be closed again without an effect, whatever the conditions', () => {
    expect(run(closed, { matchSeqNum: 0 }, [closeRecord()])).toEqual({
      kind: 'duplicate',
      start: { seqNum: 1, timestamp: 1_000 },
      end: { seqNum: 2, timestamp: 1_000 },
    })
  })

  it('ends with the close', () => {
    expect(() => appendBatch([closeRecord(), 'b'])).toThrow(
      expect.objectContaining({ code: 'invalid', field: 'records' }),
    )
  })
})

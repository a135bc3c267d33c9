import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type StreamState, sequence } from '../../src/core/sequence.ts'
import { type AppendConditions, appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
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

describe('a producer', () => {
  const first = stored(EMPTY, producer(3, 0), ['a', 'b'])

  it('begins with batch 0, in any epoch', () => {
    expect(first.writeState?.producers).toEqual([
      {
        id: 'p',
        epoch: 3,
        seq: 0,
        appendedAt: 1_000,
        start: { seqNum: 0, timestamp: 1_000 },
        end: { seqNum: 2, timestamp: 1_000 },
      },
    ])
    expect(refusal(EMPTY, producer(0, 1))).toMatchObject({
      code: 'producer_gap',
      expectedSeq: 0,
      receivedSeq: 1,
      mayHaveEffects: false,
    })
  })

  it('gets the positions of its last batch again', () => {
    const state = stored(first, {}, ['of another writer'])
    expect(run(state, producer(3, 0))).toEqual({
      kind: 'duplicate',
      start: { seqNum: 0, timestamp: 1_000 },
      end: { seqNum: 2, timestamp: 1_000 },
    })
  })

  it('learns that an earlier batch is stored', () => {
    const state = stored(first, producer(3, 1))
    expect(refusal(state, producer(3, 0))).toMatchObject({ code: 'already_appended', lastSeq: 1 })
  })

  it('must not leave out a batch', () => {
    expect(refusal(first, producer(3, 2))).toMatchObject({
      code: 'producer_gap',
      expectedSeq: 1,
      receivedSeq: 2,
    })
  })

  it('is fenced off by a greater epoch, which begins with batch 0', () => {
    expect(refusal(first, producer(4, 1))).toMatchObject({ code: 'invalid', field: 'producer' })
    const state = stored(first, producer(4, 0))
    for (const seq of [0, 1]) {
      expect(refusal(state, producer(3, seq))).toMatchObject({ code: 'producer_fenced', producerEpoch: 4 })
    }
  })

  it('is found stored before any other condition is checked', () => {
    const closed = stored(first, producer(3, 1), ['c', closeRecord()])
    expect(run(closed, { ...producer(3, 1), matchSeqNum: 2, fencingToken: 'none' }).kind).toBe('duplicate')
    expect(refusal(closed, producer(3, 2))).toMatchObject({ code: 'stream_closed', seqNum: 4 })
    expect(refusal(closed, producer(3, 2), [closeRecord()])).toMatchObject({ code: 'stream_closed' })
  })

  it('is independent of others', () => {
    const state = stored(first, producer(0, 0, 'q'))
    expect(stored(state, producer(3, 1)).writeState?.producers?.map(({ id, seq }) => [id, seq])).toEqual([
      ['q', 0],
      ['p', 1],
    ])
  })

  it('is not remembered if its batch is rejected', () => {
    expect(refusal(EMPTY, { ...producer(0, 0), matchSeqNum: 1 }).code).toBe('seq_num_mismatch')
    expect(stored(EMPTY, producer(0, 0)).writeState?.producers).toHaveLength(1)
  })
})

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

const step = fc.record({
  id: fc.constantFrom('', 'p', 'q'),
  epoch: fc.nat(2),
  seq: fc.nat(4),
  streamSeq: fc.option(fc.constantFrom('a', 'b', 'c')),
  closes: fc.boolean(),
  now: fc.nat(50),
})

/** A naive model: every batch that was stored, by its producer, epoch and number. */
class NaiveStream {
  readonly stored = new Map<string, { start: number; end: number }>()
  readonly epochs = new Map<string, number>()
  count = 0
  streamSeq: string | undefined
  isClosed = false

  append({ id, epoch, seq, streamSeq, closes }: typeof step extends fc.Arbitrary<infer V> ? V : never) {
    const key = (number: number) => `${id} ${epoch} ${number}`
    const known = this.epochs.get(id)
    if (id !== '' && known === epoch && this.stored.has(key(seq))) {
      return this.stored.has(key(seq + 1))
        ? 'already_appended'
        : `duplicate ${this.stored.get(key(seq))!.start}`
    }
    if (this.isClosed) return 'stream_closed'
    if (id !== '') {
      if (known !== undefined && epoch < known) return 'producer_fenced'
      if (known === epoch && !this.stored.has(key(seq - 1))) return 'producer_gap'
      if (known === undefined && seq > 0) return 'producer_gap'
      if (known !== undefined && epoch > known && seq > 0) return 'invalid'
    }
    if (streamSeq !== null && this.streamSeq !== undefined && compareUtf8(streamSeq, this.streamSeq) <= 0) {
      return 'stream_seq_not_increasing'
    }
    const start = this.count
    this.count += closes ? 2 : 1
    if (id !== '') {
      this.stored.set(key(seq), { start, end: this.count })
      this.epochs.set(id, epoch)
    }
    this.streamSeq = streamSeq ?? this.streamSeq
    this.isClosed = closes
    return `sequenced ${start}`
  }
}

it('any sequence of batches agrees with a naive model', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const naive = new NaiveStream()
      let state = EMPTY
      for (const step of steps) {
        // Closing is rare, because nothing happens afterwards.
        const closes = step.closes && step.now === 0
        const { id, epoch, seq, streamSeq, now } = step
        const conditions = {
          producer: id === '' ? undefined : { id, epoch, seq },
          streamSeq: streamSeq ?? undefined,
        }
        const before = structuredClone(state)
        const outcome = run(state, conditions, closes ? ['x', closeRecord()] : ['x'], now)
        expect(state).toEqual(before)
        const shown =
          outcome.kind === 'refused' ? outcome.error.code : `${outcome.kind} ${outcome.start.seqNum}`
        expect(shown).toBe(naive.append({ ...step, closes }))
        if (outcome.kind === 'sequenced') state = outcome.next
      }
    }),
  )
})

import { afterEach, describe, expect, it } from 'vitest'
import {
  fenceRecord,
  HeadwaterError,
  type RecordInput,
  type Stream,
  type StreamConfigInput,
  trimRecord,
} from '../../../src/index.ts'
import { MIB } from '../../../src/model/limits.ts'
import {
  bodies,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  type TestEngine,
} from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

/** What the clock of the tests shows. */
const NOW = 1_000_000
const command = (operation: string, body: RecordInput) =>
  ({ headers: [['', operation]], body }) as RecordInput

onEveryKindOfStorage(() =>
  describe('append', () => {
    it('acknowledges positions and stores the records', async () => {
      engine = await openEngine()
      const { stream } = engine
      const ack = await stream.append(['a', 'b'])
      expect(ack).toEqual({
        start: { seqNum: 0, timestamp: NOW },
        end: { seqNum: 2, timestamp: NOW },
        tail: { seqNum: 2, timestamp: NOW },
      })
      expect(await stream.checkTail()).toEqual(ack.tail)
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    })

    it('keeps the order of calls that are not awaited, also while they create the stream', async () => {
      engine = await openEngine()
      const fresh = engine.hw.basin('other').stream('new')
      const acks = await Promise.all(Array.from({ length: 50 }, (_, i) => fresh.append(`${i}`)))
      expect(acks.map(({ start }) => start.seqNum)).toEqual(Array.from({ length: 50 }, (_, i) => i))
      expect(await readAll(fresh)).toEqual(Array.from({ length: 50 }, (_, i) => `${i}`))
    })

    it('comes after creations that were called before and are not awaited', async () => {
      engine = await openEngine()
      const { hw } = engine
      const config = { retentionPolicy: { ageSeconds: 99 } } as const
      const stream = hw.basin('basin').stream('new')
      const inNewBasin = hw.basin('new').stream('s')
      const results = await Promise.allSettled([
        hw.basin('basin').createStream('new', config),
        stream.append('a'),
        hw.createBasin('new', { defaultStreamConfig: config }),
        inNewBasin.append('b'),
        hw.basin('basin').createStream('failing', { retentionPolicy: { ageSeconds: -1 } }),
        hw.basin('basin').stream('failing').append('c'),
      ])
      expect(results.map(({ status }) => status === 'fulfilled')).toEqual([
        true,
        true,
        true,
        true,
        false,
        true,
      ])
      for (const each of [stream, inNewBasin]) expect(await each.config()).toMatchObject(config)
    })

    it('rejects conditions that do not hold after the appends in flight', async () => {
      engine = await openEngine()
      const { stream } = engine
      const [first, second, third] = await Promise.allSettled([
        stream.append('a', { matchSeqNum: 0 }),
        stream.append('b', { matchSeqNum: 0 }),
        stream.append('c', { matchSeqNum: 1 }),
      ])
      expect([first.status, second.status, third.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      const error = (second as PromiseRejectedResult).reason
      expect(HeadwaterError.is(error) && [error.code, error.seqNum]).toEqual(['seq_num_mismatch', 1])
      expect(await readAll(stream)).toEqual(['a', 'c'])
    })

    it('delivers history, then live records', async () => {
      engine = await openEngine()
      const { stream, hw } = engine
      await stream.append(['a', 'b'])
      const received: string[] = []
      const subscription = stream.follow({ seqNum: 0 }).records$.subscribe(({ body }) => received.push(body))
      await engine.clock.settle()
      await stream.append('c')
      await engine.clock.settle()
      expect(received).toEqual(['a', 'b', 'c'])
      expect(hw.stats()).toMatchObject({ openReads: 1, waitingReads: 1 })
      subscription.unsubscribe()
      await engine.clock.settle()
      expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
    })
  }),
)

type Call = (stream: Stream) => Promise<unknown>
const append =
  (options: object, record: RecordInput = 'x'): Call =>
  (stream) =>
    stream.append(record, options)
const fence =
  (token: string, options = {}): Call =>
  (stream) =>
    stream.fence(token, options)

describe('the conditions of appends', () => {
  it.each<[string, readonly (readonly [Call, outcome: string])[]]>([
    [
      'the sequence number',
      [
        [append({ matchSeqNum: 1 }), 'seq_num_mismatch'],
        [append({ matchSeqNum: 0 }), 'ok'],
        [append({ matchSeqNum: 1 }, trimRecord(0)), 'ok'],
        [append({ matchSeqNum: 1 }), 'seq_num_mismatch'],
        [append({ matchSeqNum: 2 }), 'ok'],
      ],
    ],
    [
      'the fencing token, for those who give one',
      [
        [append({ fencingToken: 'a' }), 'fencing_token_mismatch'],
        [fence('a', { fencingToken: '' }), 'ok'],
        [append({ fencingToken: 'b' }), 'fencing_token_mismatch'],
        [append({ fencingToken: 'a' }), 'ok'],
        [append({}), 'ok'],
      ],
    ],
    [
      'the fencing token, until it is replaced or cleared',
      [
        [fence('a'), 'ok'],
        [fence('b', { fencingToken: 'other' }), 'fencing_token_mismatch'],
        [fence('b', { fencingToken: 'a' }), 'ok'],
        [append({ fencingToken: 'a' }), 'fencing_token_mismatch'],
        [fence(''), 'ok'],
        [append({ fencingToken: 'b' }), 'fencing_token_mismatch'],
        [append({ fencingToken: '' }), 'ok'],
      ],
    ],
    [
      'both',
      [
        [fence('a'), 'ok'],
        [append({ fencingToken: 'a', matchSeqNum: 0 }), 'seq_num_mismatch'],
        [append({ fencingToken: 'b', matchSeqNum: 1 }), 'fencing_token_mismatch'],
        [append({ fencingToken: 'a', matchSeqNum: 1 }), 'ok'],
      ],
    ],
    [
      'the order of `streamSeq`',
      [
        [append({ streamSeq: 'b' }), 'ok'],
        [append({ streamSeq: 'b' }), 'stream_seq_not_increasing'],
        [append({ streamSeq: 'a' }), 'stream_seq_not_increasing'],
        [append({ streamSeq: 'c' }), 'ok'],
        [append({}), 'ok'],
      ],
    ],
  ])('are %s', async (_, steps) => {
    engine = await openEngine()
    const outcomes = await Promise.all(steps.map(([call]) => outcomeOf(call(engine.stream))))
    const expected = steps.map(([, outcome]) => outcome)
    expect(outcomes).toEqual(expected)
    const { seqNum } = await engine.stream.checkTail()
    expect(seqNum).toBe(expected.filter((outcome) => outcome === 'ok').length)
  })

  it('are reported with what they should have been', async () => {
    engine = await openEngine()
    const { stream } = engine
    await stream.fence('mine')
    const yours = stream.append('x', { fencingToken: 'yours' })
    await expect(yours).rejects.toMatchObject({ status: 412, fencingToken: 'mine', mayHaveEffects: false })
    const early = stream.append('x', { matchSeqNum: 0 })
    await expect(early).rejects.toMatchObject({ status: 412, seqNum: 1, mayHaveEffects: false })
  })
})

describe('an append of', () => {
  it.each<[string, unknown, 'ok' | 'invalid']>([
    ['1,000 records', Array(1_000).fill('x'), 'ok'],
    ['1,001 records', Array(1_001).fill('x'), 'invalid'],
    ['no record', [], 'invalid'],
    ['nothing', undefined, 'invalid'],
    ['1 MiB', new Uint8Array(MIB - 8), 'ok'],
    ['1 MiB and a byte', new Uint8Array(MIB - 7), 'invalid'],
    ['1 MiB and a byte in two records', [new Uint8Array(MIB - 16), 'x'], 'invalid'],
    ['an array in a batch', [['a']], 'invalid'],
    ['a body that is no bytes', { body: 5 }, 'invalid'],
    ['headers that are no array', { headers: 'x' }, 'invalid'],
    ['a header that is no pair', { headers: [['a']] }, 'invalid'],
    ['an empty header value', { headers: [['a', '']] }, 'ok'],
    ['a timestamp that is no integer', { timestamp: 1.5 }, 'invalid'],
    ['a negative timestamp', { timestamp: -1 }, 'invalid'],
    ['a timestamp beyond 2^53 - 1', { timestamp: 2 ** 53 }, 'invalid'],
    ['a fence with 36 bytes', fenceRecord('x'.repeat(36)), 'ok'],
    ['a fence with 37 bytes', command('fence', 'x'.repeat(37)), 'invalid'],
    ['a fence that is no UTF-8', command('fence', new Uint8Array([0xff])), 'invalid'],
    ['a trim beyond the tail', trimRecord(Number.MAX_SAFE_INTEGER), 'ok'],
    ['a trim with 7 bytes', command('trim', new Uint8Array(7)), 'invalid'],
    ['an unknown command', command('what', ''), 'invalid'],
    [
      'a command among headers',
      {
        headers: [
          ['a', 'b'],
          ['', 'fence'],
        ],
      },
      'invalid',
    ],
  ])('%s: %#', async (_, input, expected) => {
    engine = await openEngine()
    expect(await outcomeOf(engine.stream.append(input as never))).toBe(expected)
    if (expected === 'invalid') expect((await engine.stream.checkTail()).seqNum).toBe(0)
  })

  it.each([-1, 1.5, Number.NaN])('a trim to %d is rejected', async (seqNum) => {
    engine = await openEngine()
    await expect(engine.stream.trim(seqNum)).rejects.toMatchObject({ code: 'invalid', field: 'seqNum' })
  })
})

describe('the timestamp of a record', () => {
  it.each<[StreamConfigInput['timestamping'], given: number | undefined, stored: number | 'invalid']>([
    [{}, undefined, NOW],
    [{}, 5, 5],
    [{}, NOW + 1, NOW],
    [{ uncapped: true }, NOW + 1, NOW + 1],
    [{ mode: 'arrival' }, 5, NOW],
    [{ mode: 'client-prefer' }, undefined, NOW],
    [{ mode: 'client-require' }, 5, 5],
    [{ mode: 'client-require' }, undefined, 'invalid'],
  ])('with %j, given %s, is %s', async (timestamping, timestamp, expected) => {
    engine = await openEngine()
    const { stream } = engine
    await stream.reconfigure({ timestamping })
    const ack = await stream.append({ body: 'x', timestamp }).catch(() => undefined)
    expect(ack?.start.timestamp ?? 'invalid').toBe(expected)
  })

  it('is not before that of the record before it', async () => {
    engine = await openEngine()
    const inputs = [20, 10, 30].map((timestamp) => ({ body: 'x', timestamp }))
    await engine.stream.append(inputs)
    const { records } = await engine.stream.readBatch({ seqNum: 0 })
    expect(records.map(({ timestamp }) => timestamp)).toEqual([20, 20, 30])
  })
})

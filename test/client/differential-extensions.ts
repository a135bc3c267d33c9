import fc from 'fast-check'
import { closeRecord } from '../../src/index.ts'
import { type DrawnCall, drawn, drawnOfEngine, streamOf } from './differential-calls.ts'

/** Few values, so that calls meet. */
const knownTarget = fc.constantFrom<readonly [string, string]>(
  ['basin-one', 's'],
  ['basin-one', 's'],
  ['basin-one', 't/1'],
  ['basin-one', 'u'],
)
const nextSeq = fc.constantFrom(0, 0, 0, 1, 1, 1, 2, 2, 3)
const validProducer = fc.record({ id: fc.constant('p'), epoch: fc.constantFrom(0, 0, 0, 0, 1), seq: nextSeq })
const validCreation = fc.record(
  {
    metadata: fc.constant({ 'content-type': 'text/plain' }),
    expiry: fc.constantFrom<never>(...([{ idleSeconds: 60 }, { at: 1_300_000 }] as never[])),
    fork: fc.record(
      { stream: fc.constantFrom('s', 't/1', 'u'), seqNum: fc.constantFrom(0, 1, 2, 3, 5) },
      { requiredKeys: ['stream'] },
    ),
    records: fc.constantFrom<never>(
      ...([
        ['first', 'second'],
        ['first', closeRecord()],
      ] as never[]),
    ),
  },
  { requiredKeys: [] },
)

const EXTENSIONS: readonly fc.WeightedArbitrary<DrawnCall>[] = [
  {
    weight: 8,
    arbitrary: drawn('append', fc.tuple(knownTarget, validProducer), (hw, names, batch) =>
      streamOf(hw, names).append(`${batch.epoch}/${batch.seq}`, { producer: batch }),
    ),
  },
  {
    weight: 2,
    arbitrary: drawn(
      'append',
      fc.tuple(knownTarget, fc.constantFrom('a', 'b', 'c')),
      (hw, names, streamSeq) => streamOf(hw, names).append(streamSeq, { streamSeq }),
    ),
  },
  {
    weight: 1,
    arbitrary: drawn('close', fc.tuple(knownTarget, fc.option(validProducer)), (hw, names, batch) =>
      streamOf(hw, names).close({ producer: batch ?? undefined }),
    ),
  },
  {
    weight: 4,
    arbitrary: drawnOfEngine('create', fc.tuple(knownTarget, validCreation), (_, engine, names, options) =>
      engine.basin(names[0]).createStream(names[1], {}, options),
    ),
  },
  { weight: 1, arbitrary: drawn('trim', fc.tuple(knownTarget), (hw, names) => streamOf(hw, names).trim(2)) },
  {
    weight: 1,
    arbitrary: drawn('delete', fc.tuple(knownTarget), (hw, names) => streamOf(hw, names).delete()),
  },
  {
    weight: 2,
    arbitrary: drawn('tail', fc.tuple(knownTarget), (hw, names) => streamOf(hw, names).checkTail()),
  },
  {
    weight: 3,
    arbitrary: drawn('readBatch', fc.tuple(knownTarget), async (hw, names) => {
      const { records: found, count, tail } = await streamOf(hw, names).readBatch()
      return { records: found, count, tail }
    }),
  },
  {
    weight: 2,
    arbitrary: drawn('follow', fc.tuple(knownTarget), (hw, names) =>
      streamOf(hw, names).follow({ seqNum: 0, waitMs: 0 }).toArray(),
    ),
  },
  { weight: 1, arbitrary: drawn('list', fc.tuple(), (hw) => hw.basin('basin-one').listStreams()) },
]

/** Calls with producers, closes, forks, expiry and metadata on a few streams of one basin. */
export const extensionCalls: fc.Arbitrary<DrawnCall[]> = fc.array(fc.oneof(...EXTENSIONS), {
  minLength: 20,
  maxLength: 40,
})

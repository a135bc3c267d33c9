import { expect, test } from 'vitest'
import type { Change } from '../../../../adapters/storage/filesystem/state/change.ts'
import { Run, type RunFacts } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { State } from '../../../../adapters/storage/filesystem/state/state.ts'
import { emptyHead } from '../../../../src/storage/heads.ts'

/** So many that an operation in quadratic time would not end. */
const COUNT = 100_000
const POSITION = { journal: { number: 1, salt: 1 }, offset: 0, bytes: 100 }
const SEGMENT = { number: 1, salt: 1, bytes: 1_000_000, journal: 0 }

test('reclaim can free every other block of a log in a journal', () => {
  const state = withLog()
  for (let i = 0; i < COUNT; i++) state.apply(append(i), POSITION)
  const ranges = everyOtherRecord().map((range) => ({ ...range, blocks: 1, meteredBytes: 10, bytes: 10 }))
  state.apply({ kind: 'free', log: 1, ranges }, POSITION)
  const remaining = state.log(1).blocks.map(({ firstSeqNum }) => firstSeqNum)
  expect(remaining).toEqual(Array.from({ length: COUNT / 2 }, (_, i) => 2 * i + 1))
  expect(state.log(1).meteredBytes).toBe((COUNT / 2) * 10)
})

test('a run with every other block freed is compacted', () => {
  const state = withLog()
  const home = state.addSegment(SEGMENT)
  const facts = { ...RUN, blocks: COUNT / 2, meteredBytes: COUNT / 2, holes: everyOtherRecord() }
  const run = new Run(home, facts)
  home.add(run)
  state.log(1).runs = [run]
  const lastHole = { from: COUNT - 1, to: COUNT, blocks: 1, meteredBytes: 1, bytes: 1 }
  state.apply({ kind: 'free', log: 1, ranges: [lastHole] }, POSITION)
  const merged = { log: 1, run: { ...RUN, segment: 2 }, omitted: everyOtherRecord() }
  state.apply(
    { kind: 'compact', segment: { ...SEGMENT, number: 2 }, replaced: [1], runs: [merged] },
    POSITION,
  )
  const [after] = state.log(1).runs
  expect(after).toMatchObject({ segment: 2, blocks: COUNT / 2 - 1 })
  expect(after?.holes).toEqual([{ from: COUNT - 1, to: COUNT }])
})

const RUN: RunFacts = {
  segment: 1,
  offset: 32,
  bytes: 1_000_000,
  indexBytes: 0,
  firstSeqNum: 0,
  endSeqNum: COUNT,
  lastTimestamp: 1,
  blocks: COUNT,
  meteredBytes: COUNT,
  liveBytes: COUNT,
  minExpiry: null,
  maxExpiry: null,
  holes: [],
}

function withLog(): State {
  const state = new State()
  state.apply({ kind: 'create-log', log: 1, id: 'a', epoch: 1, createdAt: 0 }, POSITION)
  return state
}

function append(seqNum: number): Change {
  const block = {
    firstSeqNum: seqNum,
    endSeqNum: seqNum + 1,
    firstTimestamp: seqNum,
    lastTimestamp: seqNum,
    meteredBytes: 10,
    expiresAt: null,
    data: new Uint8Array(0),
  }
  return { kind: 'append', log: 1, block, head: emptyHead(1, 0) }
}

function everyOtherRecord() {
  return Array.from({ length: COUNT / 2 }, (_, i) => ({ from: 2 * i, to: 2 * i + 1 }))
}

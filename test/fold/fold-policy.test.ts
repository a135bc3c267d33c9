import { expect, test } from 'vitest'
import { isSnapshotDue, isSnapshotDueOnClose, isSuperseded } from '../../src/sync/fold-policy.ts'

test('a fold that follows stores a snapshot once enough records are new', () => {
  expect(isSnapshotDue({ position: 1_099, saved: 1_000, every: 100, leaving: 0 }, true)).toBe(false)
  expect(isSnapshotDue({ position: 1_100, saved: 1_000, every: 100, leaving: 0 }, true)).toBe(true)
  expect(isSnapshotDue({ position: 1_000, saved: 1_000, every: 1, leaving: 0 }, true)).toBe(false)
})

test('a fold that catches up stores a snapshot each time its position has doubled', () => {
  let saved = 0
  const positions: number[] = []
  for (let position = 0; position <= 100_000; position++) {
    if (!isSnapshotDue({ position, saved, every: 1_000, leaving: 0 }, false)) continue
    positions.push(position)
    saved = position
  }
  expect(positions).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000])
})

test('a fold that is closed stores a snapshot if a tenth of the records are new', () => {
  expect(isSnapshotDueOnClose({ position: 9, saved: 0, every: 100, leaving: 0 })).toBe(false)
  expect(isSnapshotDueOnClose({ position: 10, saved: 0, every: 100, leaving: 0 })).toBe(true)
  expect(isSnapshotDueOnClose({ position: 5, saved: 5, every: 1, leaving: 0 })).toBe(false)
  expect(isSnapshotDueOnClose({ position: 6, saved: 5, every: 1, leaving: 0 })).toBe(true)
})

test('no snapshot is due while it would name more than 1,000 records that leave the outbox', () => {
  const progress = { position: 9_000, saved: 0, every: 1 }
  for (const isDue of [
    (leaving: number) => isSnapshotDue({ ...progress, leaving }, true),
    (leaving: number) => isSnapshotDueOnClose({ ...progress, leaving }),
  ]) {
    expect([isDue(1_000), isDue(1_001)]).toEqual([true, false])
  }
})

test('a snapshot of another fold replaces one that is hardly newer, or of a version opened before', () => {
  const progress = { position: 1_000, saved: 0, every: 100, leaving: 0 }
  expect(isSuperseded(progress, 900, true)).toBe(false)
  expect(isSuperseded(progress, 901, true)).toBe(true)
  expect(isSuperseded(progress, 2_000, true)).toBe(true)
  expect(isSuperseded(progress, 1_000, false)).toBe(false)
  expect(isSuperseded({ ...progress, saved: 500 }, 10, false)).toBe(true)
})

import { expect, test } from 'vitest'
import { Log } from '../../../../adapters/storage/filesystem/state/log.ts'
import { emptyHead } from '../../../../src/storage/heads.ts'

const BLOCK = {
  journal: { number: 1, salt: 0 },
  offset: 0,
  bytes: 1,
  lastTimestamp: 0,
  meteredBytes: 8,
  expiresAt: null,
}

test.each([
  ['none', [], undefined],
  ['those below the first block', [{ point: 10, at: 1 }], undefined],
  [
    'the first that frees something',
    [
      { point: 10, at: 1 },
      { point: 12, at: 5 },
      { point: 15, at: 7 },
    ],
    5,
  ],
  [
    'the earliest, after a clock went back',
    [
      { point: 12, at: 500 },
      { point: 15, at: 7 },
    ],
    7,
  ],
])('the next trim to apply: %s', (_, trims, expected) => {
  const log = new Log(1, 'a', { ...emptyHead(1, 0), trims })
  log.add({ ...BLOCK, firstSeqNum: 10, endSeqNum: 20 })
  expect(log.nextTrim).toBe(expected)
})

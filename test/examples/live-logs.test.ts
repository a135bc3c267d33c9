import { expect, it } from 'vitest'
import { lineOf } from '../../examples/live-logs/src/line.ts'

it.each([
  ['2030-01-31T12:00:00.500Z ERROR lost', 'ERROR', 'lost', '2030-01-31T12:00:00.500Z'],
  ['2030-01-31 12:00:00,500Z [main] WARN slow', 'WARN', '[main] WARN slow', '2030-01-31T12:00:00.500Z'],
  ['fatal: no space', 'ERROR', 'no space', '2030-01-01T00:00:00.000Z'],
  ['without a level', 'INFO', 'without a level', '2030-01-01T00:00:00.000Z'],
])('reads the time and the level of %j', (body, level, text, time) => {
  const timestamp = Date.UTC(2030, 0, 1)
  const line = lineOf({ seqNum: 7, timestamp, body, headers: [], command: undefined })
  expect(line).toMatchObject({ seqNum: 7, level, text })
  expect(line.time.toISOString()).toBe(time)
})

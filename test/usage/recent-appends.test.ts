import { beforeEach, describe, expect, it } from 'vitest'
import { type LogMinute, RecentAppends } from '../../src/usage/open-activity.ts'
import { MINUTE, START } from './support.ts'

let operations: string[]
let bytes: string[]
let appends: RecentAppends

const textOf = ({ logId, storageClass, minute }: LogMinute) =>
  `${logId} ${storageClass} ${(minute - START) / MINUTE}`

beforeEach(() => {
  operations = []
  bytes = []
  appends = new RecentAppends(
    (log) => operations.push(textOf(log)),
    (log) => bytes.push(`${textOf(log)}: ${log.bytes}`),
  )
})

const [first, second] = [{}, {}]

/** Minutes are counted from the start. */
function add(
  logId: string,
  connection: object,
  minute: number,
  meteredBytes = 1,
  storageClass: 'standard' | 'express' = 'standard',
): void {
  const at = (START + minute * MINUTE) * 1000 + 500
  appends.add({
    basin: 'basin-one',
    logId,
    storageClass,
    records: 1,
    meteredBytes,
    connection,
    at,
    permitMs: 0,
    ackMs: 0,
  })
}

const settle = (minute: number) => appends.report((START + minute * MINUTE) * 1000)

describe('append operations', () => {
  it('restart in each minute, for each log and connection', () => {
    add('a', first, 0)
    add('a', first, 0)
    add('a', second, 0)
    add('b', first, 0)
    expect(operations).toEqual(['a standard 0', 'a standard 0', 'b standard 0'])
    add('a', first, 1)
    settle(1)
    add('a', first, 1)
    expect(operations.slice(3)).toEqual(['a standard 1'])
  })

  it('do not restart when the clock steps back to the previous minute', () => {
    for (const minute of [10, 9, 10, 9, 10]) add('a', first, minute)
    settle(10)
    for (const minute of [10, 9, 11]) add('a', first, minute)
    expect(operations).toEqual(['a standard 10', 'a standard 9', 'a standard 11'])
  })

  it('count once a minute, even if the storage class changes', () => {
    add('a', first, 0, 5)
    add('a', first, 0, 7, 'express')
    settle(0)
    expect(operations).toEqual(['a standard 0'])
    expect(bytes).toEqual(['a standard 0: 5', 'a express 0: 7'])
  })
})

describe('appended bytes', () => {
  it('are reported once, in the minute of the append', () => {
    for (const minute of [0, 0, 1, 2, 5, 2]) add('a', first, minute, 10)
    add('b', first, 5, 3)
    expect(bytes).toEqual([])
    settle(5)
    expect(bytes).toEqual([
      'a standard 0: 20',
      'a standard 1: 10',
      'a standard 2: 20',
      'a standard 5: 10',
      'b standard 5: 3',
    ])
    settle(6)
    expect(bytes).toHaveLength(5)
    add('b', first, 5, 4)
    settle(6)
    expect(bytes.at(-1)).toBe('b standard 5: 4')
  })
})

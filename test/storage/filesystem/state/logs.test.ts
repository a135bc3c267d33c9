import { expect, test } from 'vitest'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { Log } from '../../../../adapters/storage/filesystem/state/log.ts'
import { DirectoryLogs } from '../../../../adapters/storage/filesystem/state/logs.ts'
import { Segment } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { writeLog } from '../../../../adapters/storage/filesystem/state/stored-logs.ts'
import { emptyHead } from '../../../../src/storage/heads.ts'

const SEGMENT = new Segment({ number: 1, salt: 0, bytes: 1_000_000, journal: 0 })
const RUN = {
  segment: 1,
  offset: 48,
  bytes: 100,
  indexBytes: 0,
  firstSeqNum: 0,
  endSeqNum: 10,
  lastTimestamp: 0,
  blocks: 1,
  meteredBytes: 80,
  liveBytes: 100,
  minExpiry: null as number | null,
  maxExpiry: null as number | null,
  holes: [],
}

function frameOf(numbers: readonly number[], expiryOf: (number: number) => number | null = () => null) {
  const writer = new ByteWriter()
  for (const number of numbers) {
    const runs = [{ ...RUN, minExpiry: expiryOf(number), maxExpiry: expiryOf(number) }]
    writeLog(writer, { number, id: `log-${number}`, head: emptyHead(1, number), runs })
  }
  return Buffer.from(writer.bytes)
}

function logsOf(...frames: readonly Buffer[]): DirectoryLogs {
  const logs = new DirectoryLogs(new Map([[1, SEGMENT]]))
  for (const frame of frames) logs.addStored(frame)
  return logs
}

const numbersOf = (logs: Iterable<Log>) => [...logs].map(({ number }) => number)

test('finds a log of the checkpoint by id and by number, always as the same object', () => {
  const numbers = Array.from({ length: 1_000 }, (_, i) => 3 * i + 1)
  const logs = logsOf(frameOf(numbers.slice(0, 300)), frameOf(numbers.slice(300)))
  expect(logs.storedSize).toBe(1_000)
  for (const number of numbers) {
    const log = logs.withId(`log-${number}`)
    expect(log).toMatchObject({ number, head: { appendedAt: number }, meteredBytes: 80 })
    expect(logs.withNumber(number)).toBe(log)
    expect(logs.withNumber(number + 1)).toBeUndefined()
    expect(logs.withId(`log-${number + 1}`)).toBeUndefined()
  }
})

test('a deleted log stays deleted', () => {
  const logs = logsOf(frameOf([1, 2, 3]))
  logs.delete(logs.withNumber(2)!)
  expect(logs.withNumber(2)).toBeUndefined()
  expect(logs.withId('log-2')).toBeUndefined()
  expect(numbersOf(logs.values())).toEqual([1, 3])
})

test('a scan loads nothing, and yields logs as they are once it reaches them', () => {
  const logs = logsOf(frameOf([1, 2, 3, 4]))
  const loaded = logs.withNumber(4)!
  const scan = logs.scan()
  const found = [scan.next().value!]
  expect(found[0]).not.toBe(logs.withNumber(1))
  const second = logs.withNumber(2)!
  logs.delete(logs.withNumber(3)!)
  logs.add(new Log(5, 'log-5', emptyHead(1, 5)))
  found.push(...scan)
  expect(numbersOf(found)).toEqual([1, 2, 4])
  expect(found.slice(1)).toEqual([second, loaded])
  expect(found[1]).toBe(second)
})

test('captures the logs that are not loaded', () => {
  const logs = logsOf(frameOf([1, 2]), frameOf([3]))
  logs.withNumber(2)
  const captured = logs.unloaded()
  logs.withNumber(3)
  expect([...captured]).toEqual([frameOf([1]), frameOf([3])])
})

test('loads the logs of which something expires', () => {
  const expiryOf = (number: number) => (number === 3 ? null : 100 * number)
  const logs = logsOf(frameOf([1, 2, 3], expiryOf), frameOf([4], expiryOf))
  logs.loadDue(99)
  expect(numbersOf(logs.loaded())).toEqual([])
  logs.loadDue(200)
  expect(numbersOf(logs.loaded())).toEqual([1, 2])
  logs.loadDue(10_000)
  expect(numbersOf(logs.loaded())).toEqual([1, 2, 4])
})

test('rejects logs out of order', () => {
  expect(() => logsOf(frameOf([2]), frameOf([2]))).toThrow(new RangeError('logs are not in order'))
})

test('a log that refers to a missing segment is reported as damage when it is used', () => {
  const logs = new DirectoryLogs(new Map())
  logs.addStored(frameOf([1]))
  expect(() => logs.withId('log-1')).toThrow(
    expect.objectContaining({
      kind: 'corrupt',
      message: expect.stringContaining('segment 1 does not exist'),
    }),
  )
})

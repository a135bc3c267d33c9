import { expect, test } from 'vitest'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { Log } from '../../../../adapters/storage/filesystem/state/log.ts'
import { DirectoryLogs } from '../../../../adapters/storage/filesystem/state/logs.ts'
import { Segment } from '../../../../adapters/storage/filesystem/state/segment.ts'
import { writeLog } from '../../../../adapters/storage/filesystem/state/stored-logs.ts'
import { emptyHead } from '../../../../src/storage/heads.ts'
import { collected } from './collected.ts'

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

const numbersOf = (logs: readonly Log[]) => logs.map(({ number }) => number)

test('finds a log of the checkpoint by id and by number', async () => {
  const numbers = Array.from({ length: 1_000 }, (_, i) => 3 * i + 1)
  const logs = logsOf(frameOf(numbers.slice(0, 300)), frameOf(numbers.slice(300)))
  expect(logs.storedSize).toBe(1_000)
  for (const number of numbers) {
    const found = { number, head: { appendedAt: number }, meteredBytes: 80 }
    expect(await logs.load(`log-${number}`)).toMatchObject(found)
    expect(logs.withNumber(number)).toBeUndefined()
    await logs.retain(number)
    expect(logs.withNumber(number)).toMatchObject(found)
    expect(await logs.load(`log-${number + 1}`)).toBeUndefined()
  }
})

test('a log that was not loaded is not treated as missing', async () => {
  const logs = logsOf(frameOf([1]))
  expect(() => logs.withId('log-1')).toThrow(new RangeError('log log-1 was not loaded'))
  expect(() => logs.withId('log-2')).toThrow(new RangeError('log log-2 was not loaded'))
  await Promise.all([logs.retainId('log-1'), logs.retainId('log-2')])
  expect(logs.withId('log-1')).toMatchObject({ number: 1 })
  expect(logs.withId('log-2')).toBeUndefined()
  logs.release()
  expect(() => logs.withId('log-2')).toThrow(RangeError)
})

test('a changed log is the same object until the next checkpoint', async () => {
  const logs = logsOf(frameOf([1, 2]))
  await logs.retain(1)
  const log = logs.change(1)
  logs.release()
  expect(logs.change(1)).toBe(log)
  expect(logs.withId('log-1')).toBe(log)
  expect(await logs.load('log-1')).toBe(log)
})

test('a deleted log stays deleted', async () => {
  const logs = logsOf(frameOf([1, 2, 3]))
  await logs.retain(2)
  logs.delete(logs.change(2)!)
  expect(logs.change(2)).toBeUndefined()
  expect(await logs.load('log-2')).toBeUndefined()
  await logs.retainId('log-2')
  expect(logs.withId('log-2')).toBeUndefined()
  expect(numbersOf(await collected(logs.values()))).toEqual([1, 3])
})

test('an iteration yields logs as they are once it reaches them', async () => {
  const logs = logsOf(frameOf([1, 2, 3, 4]))
  const change = async (number: number) => {
    await logs.retain(number)
    return logs.change(number)!
  }
  const fourth = await change(4)
  const scan = logs.values()
  const found = [(await scan.next()).value!]
  const second = await change(2)
  logs.delete(await change(3))
  logs.add(new Log(5, 'log-5', emptyHead(1, 5)))
  found.push(...(await collected(scan)))
  expect(numbersOf(found)).toEqual([1, 2, 4, 5])
  expect(found[1]).toBe(second)
  expect(found[2]).toBe(fourth)
})

test('an iteration continues in the checkpoint that replaces the one it began with', async () => {
  const logs = logsOf(frameOf([1, 2]), frameOf([3, 4]))
  const scan = logs.values()
  const found = [(await scan.next()).value!]
  logs.freeze()
  logs.rebase(logsOf(frameOf([1]), frameOf([2, 3, 5]), frameOf([6])))
  found.push(...(await collected(scan)))
  expect(numbersOf(found)).toEqual([1, 2, 3, 5, 6])
})

test('an iteration does not miss the logs that leave memory with a checkpoint', async () => {
  const logs = logsOf(frameOf([1, 2]))
  for (const number of [3, 4, 5]) logs.add(new Log(number, `log-${number}`, emptyHead(1, number)))
  const scan = logs.values()
  const found: Log[] = []
  for (let i = 0; i < 3; i++) found.push((await scan.next()).value!)
  logs.freeze()
  logs.rebase(logsOf(frameOf([1, 2, 3]), frameOf([4, 5])))
  logs.add(new Log(6, 'log-6', emptyHead(1, 6)))
  found.push(...(await collected(scan)))
  expect(numbersOf(found)).toEqual([1, 2, 3, 4, 5, 6])
})

test('what changes while a checkpoint is written does not change what it captured', async () => {
  const logs = logsOf(frameOf([1, 2, 3, 4]))
  for (const number of [2, 3]) await logs.retain(number)
  logs.change(2)!.head = emptyHead(7, 0)
  logs.change(3)
  logs.freeze()
  logs.change(2)!.head = emptyHead(8, 0)
  logs.delete(logs.change(3)!)
  const captured = await collected(logs.snapshot(logs.frozen()))
  expect(captured.flat().map((log) => (Buffer.isBuffer(log) ? 'stored' : log.head.epoch))).toEqual([
    'stored',
    7,
    1,
    'stored',
  ])
  logs.thaw()
  expect(logs.withId('log-2')).toMatchObject({ head: { epoch: 8 } })
  expect(logs.withId('log-3')).toBeUndefined()
  expect(numbersOf(await collected(logs.values()))).toEqual([1, 2, 4])
})

test('finds the logs of which something expires', async () => {
  const expiryOf = (number: number) => (number === 3 ? null : 100 * number)
  const logs = logsOf(frameOf([1, 2, 3], expiryOf), frameOf([4], expiryOf))
  const due = (time: number) => logs.due(time, ({ nextExpiry }) => nextExpiry <= time)
  expect(await due(99)).toEqual([])
  expect(await due(200)).toEqual([1, 2])
  expect(await due(10_000)).toEqual([1, 2, 4])
  expect(await logs.changeIf(1, () => false)).toBeUndefined()
  expect(await logs.changeIf(1, () => true)).toBe(logs.change(1))
  logs.change(1)!.nextExpiry = 10_001
  expect(await due(10_000)).toEqual([2, 4])
})

test('rejects logs out of order', () => {
  expect(() => logsOf(frameOf([2]), frameOf([2]))).toThrow(new RangeError('logs are not in order'))
})

test('a log that refers to a missing segment is reported as damage when it is used', async () => {
  const logs = new DirectoryLogs(new Map())
  logs.addStored(frameOf([1]))
  await expect(logs.load('log-1')).rejects.toMatchObject({
    kind: 'corrupt',
    message: expect.stringContaining('segment 1 does not exist'),
  })
})

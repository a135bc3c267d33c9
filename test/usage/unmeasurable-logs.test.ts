import { beforeEach, describe, expect, it } from 'vitest'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  HOUR,
  MINUTE,
  maintain,
  ofBasin,
  ofStream,
  openUsage,
  type TestUsage,
  usageKeys,
} from './support.ts'

const STREAMS = Array.from({ length: 300 }, (_, index) => ({ basin: 'basin-one', stream: `log-${index}` }))
const BAD = STREAMS[120]!

let test: TestUsage
let bad: (logId: string) => boolean
let measured: number

beforeEach(async () => {
  bad = () => false
  measured = 0
  const storage = wrapped(testStorage(), {}, (session) => ({
    measure: async (logIds) => {
      measured++
      if (logIds.some(bad)) throw new StorageFailure('corrupt', 'damaged', { nothingWritten: true })
      return session.measure(logIds)
    },
  }))
  test = await openUsage({ storage })
  await createBasin(test, 'basin-one')
  for (const stream of STREAMS) {
    await createStream(test, stream)
    await append(test, stream, 5)
  }
})

async function measuredLogs(): Promise<number> {
  return (await usageKeys(test)).filter((key) => key.includes('log\0')).length
}

describe('a log that cannot be measured', () => {
  beforeEach(() => {
    bad = (logId) => logId === BAD.stream
  })

  it('does not stop others from being measured, and is measured later', async () => {
    await advanceTo(test, MINUTE)
    expect(await measuredLogs()).toBe(STREAMS.length - 1)
    expect(test.errors).toMatchObject([{ cause: { kind: 'corrupt' } }])
    bad = () => false
    await advanceTo(test, 2 * MINUTE)
    expect(await measuredLogs()).toBe(STREAMS.length)
    expect(test.errors).toHaveLength(1)
    expect(test.clock.pending).toBe(0)
  })

  it('fails only queries of its own storage', async () => {
    test.usage.delivered('basin-two', 7)
    expect(await ofBasin(test, 'basin-two', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 7]] })
    expect(await ofStream(test, STREAMS[0]!, [0, 1])).toEqual([[0, 5]])
    await expect(ofStream(test, BAD, [0, 1])).rejects.toMatchObject({ code: 'storage' })
    expect(await activeBasins(test, [0, 1])).toEqual(['basin-one'])
  })

  it('counts in its basin with its last measurement', async () => {
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 1])).toEqual({
      metered_size: [[0, 5 * (STREAMS.length - 1)]],
    })
    bad = () => false
    await advanceTo(test, MINUTE)
    bad = (logId) => logId === BAD.stream
    for (const stream of STREAMS) await append(test, stream, 1)
    const held = 6 * (STREAMS.length - 1) + 5
    await advanceTo(test, HOUR)
    await maintain(test)
    await advanceTo(test, HOUR + 1)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, HOUR + 1])).toEqual({
      metered_size: [
        [0, held],
        [HOUR, held],
      ],
    })
  })

  it('is reported once for each measurement of its basin', async () => {
    bad = (logId) => logId === 'log-1' || logId === 'log-99'
    await advanceTo(test, HOUR)
    test.errors.length = 0
    await maintain(test)
    expect(test.errors).toMatchObject([{ cause: { kind: 'corrupt' } }])
  })
})

describe('a storage that cannot measure', () => {
  it('is not called for every log again', async () => {
    bad = () => true
    await advanceTo(test, MINUTE)
    // The whole page, then each of its logs.
    expect(measured).toBe(101)
    expect(test.errors).toHaveLength(1)
    bad = () => false
    await advanceTo(test, 2 * MINUTE)
    expect(await measuredLogs()).toBe(STREAMS.length)
  })
})

import { describe, expect, test } from 'vitest'
import { WHOLE_LOG } from '../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, type StorageOperation, virtualClock } from '../../adapters/testing/index.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../src/storage/errors.ts'
import { openFaulty, outcome, put } from './storage-support.ts'

/** Each call of the contract, with an observable effect. */
const CALLS: Record<Exclude<StorageOperation, 'open'>, (session: StorageSession) => Promise<unknown>> = {
  get: (session) => session.get('streams', 'a'),
  list: (session) => session.list('streams', { prefix: '', after: '', limit: 10 }),
  commit: (session) => session.commit([put('b')]),
  head: (session) => session.head('log'),
  append: (session) => new LogWriter(session, 'log').append(),
  read: (session) => session.read('log', WHOLE_LOG),
  reclaim: (session) => session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1 }),
  measure: (session) => session.measure(['log']),
}
const OPERATIONS = Object.keys(CALLS) as (keyof typeof CALLS)[]
const WRITES = ['commit', 'append', 'reclaim']

describe.each(OPERATIONS)('%s', (operation) => {
  test('that fails has no effect, and the failure states it', async () => {
    const { storage, session } = await openFaulty()
    storage.failNext(operation, { kind: 'quota' })
    const error = await CALLS[operation](session).catch((reason: unknown) => reason)
    expect(StorageFailure.is(error)).toBe(true)
    expect(error).toMatchObject({ kind: 'quota', nothingWritten: true })
    expect(await session.get('streams', 'b')).toBeUndefined()
    expect(await session.head('log')).toMatchObject({ tail: { seqNum: 0 } })
    expect(await outcome(CALLS[operation](session))).toBe('done')
  })

  test('whose result is lost takes effect, and the failure leaves that open', async () => {
    const { storage, session } = await openFaulty()
    storage.failNext(operation, { after: true })
    const error = await CALLS[operation](session).catch((reason: unknown) => reason)
    expect(StorageFailure.is(error)).toBe(true)
    expect(error).toMatchObject({ kind: 'io', nothingWritten: !WRITES.includes(operation) })
    expect((await session.get('streams', 'b')) !== undefined).toBe(operation === 'commit')
    expect((await session.head('log'))?.tail.seqNum === 1).toBe(operation === 'append')
  })

  test('fails until `heal`, without affecting other operations', async () => {
    const { storage, session } = await openFaulty()
    storage.fail(operation)
    for (let i = 0; i < 3; i++) expect(await outcome(CALLS[operation](session))).toBe('io')
    const others = OPERATIONS.filter((other) => other !== operation)
    for (const other of others) expect(await outcome(CALLS[other](session)), other).toBe('done')
    storage.heal()
    expect(await outcome(session.get('streams', 'a'))).toBe('done')
  })
})

describe('`open`', () => {
  test('fails, and the storage can be opened afterwards', async () => {
    const storage = faultyStorage(memory())
    const context = { clock: virtualClock(), onLogChanged: () => {} }
    storage.failNext('open', { kind: 'blocked' })
    await expect(storage.open(context)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
    await (await storage.open(context)).close()
  })
})

describe('the failing call', () => {
  test('is the nth that matches `when`', async () => {
    const { storage, session } = await openFaulty()
    storage.fail('get', { when: (collection) => collection === 'basins' })
    storage.fail('commit', {
      nth: 2,
      when: (changes) => changes.some((change) => change.kind === 'create-log'),
    })
    expect(await outcome(session.get('streams', 'a'))).toBe('done')
    expect(await outcome(session.get('basins', 'a'))).toBe('io')
    const create = (logId: string) =>
      outcome(session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: 0 }]))
    expect(await create('x')).toBe('done')
    expect(await outcome(session.commit([put('x')]))).toBe('done')
    expect(await create('y')).toBe('io')
    expect(await create('y')).toBe('done')
  })

  test.each([0, -1, 1.5, Number.NaN])('cannot be call number %s', (nth) => {
    expect(() => faultyStorage(memory()).fail('head', { nth })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
  })
})

test('must be a call of the contract', () => {
  expect(() => faultyStorage(memory()).fail('apend' as 'append')).toThrow('apend')
})

describe('a conflict', () => {
  test.each(['commit', 'append'] as const)('of %s has no effect', async (operation) => {
    const { storage, session } = await openFaulty()
    storage.failNext(operation, { kind: 'conflict' })
    const error = await CALLS[operation](session).catch((reason: unknown) => reason)
    expect(StorageConflict.is(error)).toBe(true)
    expect(await session.get('streams', 'b')).toBeUndefined()
    expect(await session.head('log')).toMatchObject({ tail: { seqNum: 0 } })
  })

  test('is possible only for commits and appends without `after`', () => {
    const storage = faultyStorage(memory())
    expect(() => storage.fail('read', { kind: 'conflict' })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
    expect(() => storage.fail('append', { kind: 'conflict', after: true })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
  })
})

describe('a failure among pipelined appends', () => {
  test('makes later appends conflict if the failed one had no effect', async () => {
    const { storage, session } = await openFaulty()
    storage.fail('append', { nth: 2 })
    const writer = new LogWriter(session, 'log')
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcome(writer.append())))
    expect(outcomes).toEqual(['done', 'io', 'conflict', 'conflict'])
    expect(await session.head('log')).toMatchObject({ tail: { seqNum: 1 } })
  })

  test('lets later appends succeed if the failed one took effect', async () => {
    const { storage, session } = await openFaulty()
    storage.fail('append', { nth: 2, after: true })
    const writer = new LogWriter(session, 'log')
    const outcomes = await Promise.all([1, 2, 3].map(() => outcome(writer.append())))
    expect(outcomes).toEqual(['done', 'io', 'done'])
    expect(await session.head('log')).toEqual(writer.head)
  })
})

describe('torn reads', () => {
  const wholeLog = async (session: StorageSession) =>
    (await session.read('log', WHOLE_LOG)).map(({ firstSeqNum }) => firstSeqNum)

  test('return the first of their blocks', async () => {
    const { storage, session } = await openFaulty()
    await new LogWriter(session, 'log').appendUnmergeable(3)
    storage.tearReads({ nth: 2 })
    expect(await wholeLog(session)).toEqual([0, 1, 2])
    expect(await wholeLog(session)).toEqual([0])
    expect(await wholeLog(session)).toEqual([0, 1, 2])
    expect(storage.log).toEqual([{ fault: 'torn read', operation: 'read', call: 2 }])
  })
})

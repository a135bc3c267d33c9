import { describe, expect, test } from 'vitest'
import { LogWriter } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { openFaulty, outcome, put } from './storage-support.ts'

/** Records the outcome of a call once it settles. */
function watched<Result>(call: Promise<Result>): { settled: boolean; outcome: Promise<string> } {
  const state = { settled: false, outcome: outcome(call) }
  void state.outcome.then(() => {
    state.settled = true
  })
  return state
}

describe('a delayed call', () => {
  test('runs after the delay', async () => {
    const { storage, session, clock } = await openFaulty()
    storage.delay('commit', '2s', { nth: 1 })
    const commit = watched(session.commit([put('b')]))
    await clock.advance(1999)
    expect(commit.settled).toBe(false)
    expect(await session.get('streams', 'b')).toBeUndefined()
    await clock.advance(1)
    expect(await commit.outcome).toBe('done')
    expect(await session.get('streams', 'b')).toBeDefined()
    expect(storage.log).toEqual([
      { fault: 'delay', operation: 'commit', call: 2, delayMs: 2000, after: false },
    ])
  })

  test('runs at once if only its result is delayed', async () => {
    const { storage, session, clock } = await openFaulty()
    storage.delay('commit', '2s', { after: true })
    const commit = watched(session.commit([put('b')]))
    expect(await session.get('streams', 'b')).toBeDefined()
    await clock.advance(1999)
    expect(commit.settled).toBe(false)
    await clock.advance(1)
    expect(await commit.outcome).toBe('done')
  })

  test('delays later appends to its log, and no others', async () => {
    const { storage, session, clock } = await openFaulty()
    const other = await LogWriter.create(session, 'other')
    storage.delay('append', '1s', { nth: 2 })
    const writer = new LogWriter(session, 'log')
    const appends = Array.from({ length: 4 }, () => watched(writer.append()))
    await other.append()
    expect(await session.head('log')).toMatchObject({ tail: { seqNum: 1 } })
    await clock.advance('1s')
    expect(await Promise.all(appends.map(({ outcome }) => outcome))).toEqual(Array(4).fill('done'))
    expect(await session.head('log')).toEqual(writer.head)
  })

  test('runs at once when the session closes, and closing waits for it', async () => {
    const { storage, session, clock } = await openFaulty()
    storage.delay('commit', '1d')
    storage.delay('commit', '1d', { after: true })
    const commit = watched(session.commit([put('b')]))
    await Promise.all([session.close(), session.close()])
    expect(commit.settled).toBe(true)
    expect(await commit.outcome).toBe('done')
    expect(clock.pending).toBe(0)
    expect(await outcome(session.get('streams', 'b'))).toBe('closed')
  })

  test('may be `open`', async () => {
    const { storage, clock } = await openFaulty()
    storage.delay('open', '1s')
    storage.delay('open', '2s', { after: true })
    const opening = watched(storage.open({ clock, onLogChanged: () => {} }))
    await clock.advance(2999)
    expect(opening.settled).toBe(false)
    await clock.advance(1)
    expect(await opening.outcome).toBe('done')
  })
})

test('rejects an invalid duration', () => {
  const storage = faultyStorage(memory())
  expect(() => storage.delay('read', 'soon')).toThrow(expect.objectContaining({ code: 'invalid' }))
})

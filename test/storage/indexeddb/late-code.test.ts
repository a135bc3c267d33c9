import 'fake-indexeddb/auto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { virtualClock } from '../../../adapters/testing/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'

const REST = '../../../adapters/storage/indexeddb/rest.ts'
const PUT = { kind: 'put', collection: 'streams', key: 'a', value: 1 } as const

/** Lets the code come. */
let come: () => void
let databases = 0

/** As in a browser, where code comes over a network: here when the test says so. */
beforeEach(() => {
  findCode()
  const gate = new Promise<void>((resolve) => {
    come = resolve
  })
  vi.doMock(REST, async (importOriginal) => {
    await gate
    return importOriginal()
  })
})

afterEach(() => {
  come()
  findCode()
})

function findCode(): void {
  vi.doUnmock(REST)
  vi.resetModules()
}

async function openSession() {
  const { indexedDb } = await import('../../../adapters/storage/indexeddb/index.ts')
  const clock = virtualClock()
  const session = await indexedDb(`late-${databases++}`).open({ clock, onLogChanged: () => {} })
  return { session, clock }
}

async function loseCode(): Promise<StorageSession> {
  findCode()
  vi.doMock(REST, () => {
    throw new Error('no network')
  })
  return (await openSession()).session
}

describe('IndexedDB, before all of its code is there', () => {
  it('calls wait for it and are made in their order', async () => {
    const { session } = await openSession()
    const [first, second] = [session.commit([PUT]), session.commit([{ ...PUT, value: 2 }])]
    const listed = session.list('streams', { prefix: '', after: '', limit: 9 })
    come()
    await Promise.all([first, second])
    expect((await session.get('streams', 'a'))?.value).toBe(2)
    expect(await listed).toBeDefined()
    await session.close()
  })

  it('who closes waits for what was asked for', async () => {
    const { session } = await openSession()
    const commit = session.commit([PUT])
    const closed = session.close()
    come()
    await Promise.all([commit, closed])
  })

  it('who closes waits no longer than 5 s for code that does not come; what needs it was not done', async () => {
    const { session, clock } = await openSession()
    const commit = session.commit([PUT])
    const settled = expect(commit).rejects.toMatchObject({ kind: 'closed', nothingWritten: true })
    const closed = session.close()
    // A virtual clock that is advanced waits for code as long as it takes.
    void clock.advance('5s')
    await closed
    await settled
  })

  it('a turn that is asked for of a closed session never comes', async () => {
    const { session } = await openSession()
    come()
    await session.close()
    const told: boolean[] = []
    session.backgroundTurn!((isOurs) => told.push(isOurs))()
    session.backgroundTurn!((isOurs) => told.push(isOurs))
    await new Promise((resolve) => setImmediate(resolve))
    expect(told).toEqual([])
  })

  it('is asked for again by the next call when it could not be had, and whoever needs it is told', async () => {
    const session = await loseCode()
    const failure = { kind: 'io', nothingWritten: true, message: 'part of its code could not be loaded' }
    await expect(session.commit([PUT])).rejects.toMatchObject(failure)
    await expect(session.measure(['a'])).rejects.toMatchObject(failure)
    expect(await session.get('streams', 'a')).toBeUndefined()
    vi.doUnmock(REST)
    await session.commit([PUT])
    expect((await session.get('streams', 'a'))?.value).toBe(1)
    await session.close()
  })
})

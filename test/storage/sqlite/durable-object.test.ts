import { describe, expect, it } from 'vitest'
import { durableObject, type ObjectStorage } from '../../../adapters/storage/sqlite/durable-object.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { testClock } from '../../support/index.ts'

const CONTEXT = { clock: testClock(), onLogChanged() {} }
const CHANGE = { kind: 'put', collection: 'settings', key: 'a', value: 1 } as const

/** A database without rows. `npm run check:runtimes` tests the storage on a real one, in workerd. */
class EmptyStorage implements ObjectStorage {
  failure: Error | undefined
  syncFailure: Error | undefined
  syncs = 0

  readonly sql = {
    exec: (query: string) => {
      if (this.failure !== undefined) throw this.failure
      if (query.startsWith('SELECT format')) return [{ format: 2 }]
      return query.endsWith('RETURNING version') ? [{ version: 1 }] : []
    },
  }

  transactionSync<Result>(work: () => Result): Result {
    return work()
  }

  async sync() {
    this.syncs++
    if (this.syncFailure !== undefined) throw this.syncFailure
  }
}

async function failureOf(work: Promise<unknown>): Promise<Partial<StorageFailure>> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!StorageFailure.is(error)) throw new Error(`not a StorageFailure: ${error}`)
  return { kind: error.kind, message: error.message, nothingWritten: error.nothingWritten }
}

describe('durableObject', () => {
  it('requires the storage of a Durable Object', () => {
    expect(() => durableObject(undefined as never)).toThrow(
      expect.objectContaining({
        code: 'invalid',
        message: "durableObject requires `ctx.storage`, the storage of a Durable Object's state",
      }),
    )
  })

  it('rejects a class without SQLite with the explanation of the runtime', async () => {
    const storage = new EmptyStorage()
    storage.failure = new Error('not backed by SQLite storage: use `new_sqlite_classes`')
    expect(await failureOf(durableObject(storage).open(CONTEXT))).toEqual({
      kind: 'io',
      message: 'SQLite failed on the database: not backed by SQLite storage: use `new_sqlite_classes`',
      nothingWritten: true,
    })
  })

  it('resolves a write when it is durable', async () => {
    const storage = new EmptyStorage()
    const session = await durableObject(storage).open(CONTEXT)
    await session.commit([CHANGE])
    expect(storage.syncs).toBe(1)
    storage.syncFailure = new Error('lost')
    expect(await failureOf(session.commit([CHANGE]))).toEqual({
      kind: 'io',
      message: 'SQLite failed on the database: lost',
      nothingWritten: false,
    })
    await session.close()
  })

  it.each([
    ['SQLITE_IOERR', 'io'],
    ['SQLITE_CORRUPT', 'corrupt'],
    ['SQLITE_NOTADB', 'corrupt'],
    ['SQLITE_FULL', 'quota'],
  ] as const)(
    'a transaction that fails with %s has written nothing, and neither has a read',
    async (code, kind) => {
      const storage = new EmptyStorage()
      const session = await durableObject(storage).open(CONTEXT)
      storage.failure = new Error(`${code}: it failed`)
      const request = {
        logId: 'log',
        blocks: [{ data: new Uint8Array(1) }],
      } as unknown as AppendRequest
      for (const work of [
        session.commit([CHANGE]),
        session.append(request),
        session.get('settings', 'a'),
        session.head('log'),
        session.read('log', { from: { seqNum: 0 }, endSeqNum: 1, bytesMax: 1, recordsMax: 1 }),
        session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1 }),
      ]) {
        expect(await failureOf(work)).toMatchObject({ kind, nothingWritten: true })
      }
    },
  )
})

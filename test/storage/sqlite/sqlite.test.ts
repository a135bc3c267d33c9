import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { NOW, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter, reclaimAll } from '../../../adapters/conformance/log-writer.ts'
import { type SqliteDatabase, sqlite, sqliteStorage } from '../../../adapters/storage/sqlite/index.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { testClock } from '../../support/index.ts'
import { temporaryDirectory } from '../filesystem/directories.ts'
import { DRIVERS, openDatabase, rowsOf } from './databases.ts'

const CONTEXT = { clock: testClock(), onLogChanged() {} }
const HAS_SQLITE = Object.keys(DRIVERS).length > 0

/** A storage in memory whose statements may be observed, and replaced by an error. */
async function openObserved(
  onStatement: (statement: string) => void,
  onRows: (statement: string, rows: number) => void = () => {},
): Promise<StorageSession> {
  const database = openDatabase(':memory:')
  const storage = sqliteStorage({
    name: 'observed',
    durability: 'none',
    shared: true,
    open: (): SqliteDatabase => ({
      exec(text, values) {
        onStatement(text)
        const rows = rowsOf(database.prepare(text), values)
        onRows(text, rows.length)
        return rows
      },
    }),
  })
  return storage.open(CONTEXT)
}

/** An error as `node:sqlite` and `better-sqlite3` throw it. */
const sqliteError = (code: string, errcode?: number) =>
  Object.assign(new Error('it failed'), { code, errcode })

it.each([undefined, '', 7, {}])('sqlite(%j) is invalid', (argument) => {
  expect(() => sqlite(argument as never)).toThrow(
    expect.objectContaining({
      code: 'invalid',
      message: 'sqlite requires the path of a file, or an open database',
    }),
  )
})

describe.runIf(HAS_SQLITE)('sqlite', () => {
  test('sessions of a file see the appends of each other, and one on an older head conflicts', async () => {
    const path = join(await temporaryDirectory(), 'streams.db')
    const [one, other] = [await sqlite(path).open(CONTEXT), await sqlite(path).open(CONTEXT)]
    const writer = await LogWriter.create(one, 'a')
    await writer.append()
    const stale = new LogWriter(one, 'a', writer.head)
    await new LogWriter(other, 'a', writer.head).append()
    await expect(stale.append()).rejects.toMatchObject({ name: 'StorageConflict' })
    await other.close()
    expect(seqNumsOf(await one.read('a', WHOLE_LOG))).toEqual([0, 1])
    await one.close()
    const reopened = await sqlite(path).open(CONTEXT)
    expect(seqNumsOf(await reopened.read('a', WHOLE_LOG))).toEqual([0, 1])
    await reopened.close()
  })

  test.each(Object.entries(DRIVERS))(
    'a database of %s syncs each commit, and stays open for its owner',
    async (_, Database) => {
      const database = new Database(join(await temporaryDirectory(), 'streams.db'))
      const session = await sqlite(database).open(CONTEXT)
      const setting = (pragma: string) => Object.values(database.prepare(`PRAGMA ${pragma}`).all()[0]!)[0]
      expect([setting('journal_mode'), setting('synchronous'), setting('fullfsync')]).toEqual(['wal', 2, 1])
      await session.close()
      expect(setting('journal_mode')).toBe('wal')
      database.close()
    },
  )

  describe('a file that another process has locked', () => {
    /** A connection that holds the lock of a new file. */
    async function locked(journalMode: string) {
      const path = join(await temporaryDirectory(), 'streams.db')
      const other = openDatabase(path)
      onTestFinished(() => other.close())
      rowsOf(other.prepare(`PRAGMA journal_mode = ${journalMode}`), [])
      other.exec('CREATE TABLE of_the_app (id)')
      const lock = () => other.exec('BEGIN IMMEDIATE')
      lock()
      return { path, lock, unlock: () => other.exec('ROLLBACK') }
    }

    test.each(['delete', 'wal'])('is opened once it is unlocked (%s)', async (journalMode) => {
      const { path, unlock } = await locked(journalMode)
      const database = openDatabase(path)
      onTestFinished(() => database.close())
      rowsOf(database.prepare('PRAGMA busy_timeout = 0'), [])
      const opening = sqlite(database).open(CONTEXT)
      unlock()
      await (await opening).close()
    })

    test('is written once it is unlocked, and read meanwhile', async () => {
      const { path, unlock, lock } = await locked('wal')
      unlock()
      const session = await sqlite(path).open(CONTEXT)
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      lock()
      const created = LogWriter.create(session, 'b')
      const appends = [writer.append(), writer.append()]
      await macrotask()
      expect(await writer.records()).toEqual([0])
      unlock()
      await Promise.all([created, ...appends])
      await writer.check()
      await session.close()
    })

    test.each(['BEGIN IMMEDIATE', 'COMMIT'])('is an error after five seconds (%s)', async (statement) => {
      let isLocked = false
      const session = await openObserved((text) => {
        if (isLocked && text === statement) throw sqliteError('SQLITE_BUSY')
      })
      isLocked = true
      vi.useFakeTimers()
      onTestFinished(() => void vi.useRealTimers())
      let outcome: unknown = 'pending'
      const put = { kind: 'put', collection: 'settings', key: 'a', value: 1 } as const
      session.commit([put]).catch((error: unknown) => {
        outcome = error
      })
      await vi.advanceTimersByTimeAsync(4_900)
      expect(outcome).toBe('pending')
      await vi.advanceTimersByTimeAsync(200)
      const message = 'another process keeps the database locked'
      expect(outcome).toMatchObject({ kind: 'io', message, nothingWritten: true })
      isLocked = false
      await session.commit([put])
    })
  })

  test('appends that wait share a transaction, and one that conflicts does not fail the others', async () => {
    const statements: string[] = []
    const session = await openObserved((statement) => statements.push(statement.split(/ INTO|\s+\(|$/)[0]!))
    const [a, b] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    const stale = new LogWriter(session, 'a', a.head)
    statements.length = 0
    const appends = [a.append(), stale.append(), b.append(), a.append()]
    const outcomes = await Promise.allSettled(appends)
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(statements.filter((statement) => /^(BEGIN|COMMIT|INSERT)/.test(statement))).toEqual([
      'BEGIN IMMEDIATE',
      // The two blocks of a log are merged.
      'INSERT',
      'INSERT',
      'COMMIT',
    ])
  })

  test.each([
    [sqliteError('SQLITE_FULL'), { kind: 'quota', nothingWritten: true }],
    [sqliteError('ERR_SQLITE_ERROR', 13), { kind: 'quota', nothingWritten: true }],
    [sqliteError('ERR_SQLITE_ERROR', 8), { kind: 'denied', nothingWritten: true }],
    [sqliteError('SQLITE_IOERR_FSYNC'), { kind: 'io', nothingWritten: false }],
    [sqliteError('ERR_SQLITE_ERROR', 1_034), { kind: 'io', nothingWritten: false }],
  ])(
    'a commit that fails with %o is reported; after one of unknown outcome, all are',
    async (error, failure) => {
      let isFailing = false
      const session = await openObserved((statement) => {
        if (isFailing && statement === 'COMMIT') throw error
      })
      const writer = await LogWriter.create(session, 'a')
      const before = writer.head
      isFailing = true
      await expect(writer.append()).rejects.toMatchObject(failure)
      expect(session.isFull!()).toBe(failure.kind === 'quota')
      isFailing = false
      const next = new LogWriter(session, 'a', before).append()
      if (failure.nothingWritten) {
        await next
        await session.check!()
      } else {
        const message =
          'an earlier commit failed: SQLite failed on the database: it failed; open the storage again'
        await expect(next).rejects.toMatchObject({ message, nothingWritten: true })
        await expect(session.check!()).rejects.toMatchObject({ message })
      }
    },
  )

  test('a reclaim reads few blocks of a log that it does not free', async () => {
    let rows = 0
    const countRows = (statement: string, count: number) => {
      if (statement.includes('FROM headwater_blocks')) rows += count
    }
    const session = await openObserved(() => {}, countRows)
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 150; i++) await writer.append({ expiresAt: NOW + i })
    const reclaimed = async (now: number) => {
      rows = 0
      await reclaimAll(session, { now, trimmedBefore: 0, blocksMax: 250 })
      return rows
    }
    // Storing the head reads the first block that is left.
    expect(await reclaimed(NOW)).toBe(4 + 1)
    expect(await reclaimed(NOW + 5)).toBe(12 + 1)
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))[0]).toBe(6)
  })

  test('rejects tables of a preview, which stay as they are', async () => {
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    database.exec(`
      CREATE TABLE headwater_meta (id INTEGER PRIMARY KEY, format INTEGER, version INTEGER);
      INSERT INTO headwater_meta VALUES (1, 1, 7);
      CREATE TABLE headwater_logs (id TEXT PRIMARY KEY, head TEXT, metered_bytes INTEGER, due_at INTEGER);
    `)
    const schema = () => rowsOf(database.prepare('SELECT sql FROM sqlite_schema'), [])
    const before = schema()
    await expect(sqlite(database).open(CONTEXT)).rejects.toMatchObject({
      message: 'the tables have format 1; this version of headwater reads 2',
      nothingWritten: true,
    })
    expect(schema()).toEqual(before)
  })

  test('rejects a file that is no database, and one in a directory that does not exist', async () => {
    const directory = await temporaryDirectory()
    await writeFile(join(directory, 'text'), 'not a database '.repeat(1_000))
    await expect(sqlite(join(directory, 'text')).open(CONTEXT)).rejects.toMatchObject({ kind: 'corrupt' })
    const database = openDatabase(join(directory, 'text'))
    onTestFinished(() => database.close())
    await expect(sqlite(database).open(CONTEXT)).rejects.toMatchObject({
      kind: 'corrupt',
      nothingWritten: true,
    })
    const missing = join(directory, 'missing', 'streams.db')
    await expect(sqlite(missing).open(CONTEXT)).rejects.toMatchObject({
      nothingWritten: true,
      message: expect.stringContaining(missing),
    })
  })
})

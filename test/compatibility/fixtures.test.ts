// @module-tag slow

import 'fake-indexeddb/auto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystem, verifyDirectory } from '../../adapters/storage/filesystem/index.ts'
import { DATABASE_VERSION } from '../../adapters/storage/indexeddb/connection.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { DRIVERS, formatOf } from '../storage/sqlite/databases.ts'
import { CONTENTS, readContents, writeContents } from './contents.ts'
import { type DatabaseDump, restoreDatabase } from './database-dump.ts'
import { type Fixture, fixturesOf } from './fixture.ts'

const FILESYSTEM = fixturesOf('filesystem')
const INDEXEDDB = fixturesOf('indexeddb')
const POSTGRES = fixturesOf('postgres')
const SQLITE = fixturesOf('sqlite')
const clockOf = ({ writtenAt }: Fixture) => virtualClock({ now: writtenAt + 1000 })

describe('a directory', () => {
  function emptyDirectory(): string {
    const directory = mkdtempSync(join(tmpdir(), 'headwater-fixture-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    return directory
  }

  it.each(FILESYSTEM)('of format version %i is opened, and keeps everything', async (version, fixture) => {
    const directory = emptyDirectory()
    for (const [name, bytes] of Object.entries(fixture.data as Record<string, Uint8Array>)) {
      writeFileSync(join(directory, name), bytes)
    }
    expect(await verifyDirectory(directory)).toMatchObject({ problems: [], formatVersions: [version] })
    expect(await readContents(filesystem(directory), clockOf(fixture))).toEqual(CONTENTS)
    // What was appended continues it.
    const again = await readContents(filesystem(directory), clockOf(fixture))
    expect(again).toMatchObject({ appended: CONTENTS.appended + 1, large: true })
  })

  it('has a fixture of the present format', async () => {
    const directory = emptyDirectory()
    await writeContents(filesystem(directory))
    const { formatVersions } = await verifyDirectory(directory)
    expect(FILESYSTEM.map(([version]) => version)).toEqual(expect.arrayContaining([...formatVersions]))
  })
})

describe('a database in a browser', () => {
  it.each(INDEXEDDB)('of version %i is opened, and keeps everything', async (version, fixture) => {
    const name = `fixture-${version}`
    await restoreDatabase(name, fixture.data as DatabaseDump)
    expect(await readContents(indexedDb(name), clockOf(fixture))).toEqual(CONTENTS)
  })

  it('has a fixture of the present version', () => {
    expect(INDEXEDDB.map(([version]) => version)).toContain(DATABASE_VERSION)
  })
})

describe.runIf(Object.keys(DRIVERS).length > 0)('a file of SQLite', () => {
  it.each(SQLITE)('of format %i is opened, and keeps everything', async (version, fixture) => {
    const path = join(await temporaryDirectory(), 'streams.db')
    writeFileSync(path, fixture.data as Uint8Array)
    expect(formatOf(path)).toBe(version)
    expect(await readContents(sqlite(path), clockOf(fixture))).toEqual(CONTENTS)
  })

  it('has a fixture of the present format', async () => {
    const path = join(await temporaryDirectory(), 'streams.db')
    await writeContents(sqlite(path))
    expect(SQLITE.map(([version]) => version)).toContain(formatOf(path))
  })
})

it.each(POSTGRES)(
  'the tables of version %i are opened and keep everything, and no later version is without a fixture',
  async (version, fixture) => {
    const client = await PGlite.create()
    onTestFinished(() => client.close())
    // PGlite has no LZ4. A server decompresses what it stores, so the rows of the dump are plain.
    const sql = (fixture.data as string).replaceAll(/^ALTER TABLE .* SET COMPRESSION lz4;$/gm, '')
    await client.exec(sql)
    // The dump leaves no schema in the path.
    await client.exec('SET search_path TO public')
    const storage = postgres({ client, schema: 'fixture' })
    expect(await readContents(storage, clockOf(fixture))).toEqual(CONTENTS)
    await writeContents(postgres({ client, schema: 'present' }))
    const { rows } = await client.query<{ version: number }>('SELECT version FROM present.format')
    expect(Number(rows[0]!.version)).toBe(version)
  },
)

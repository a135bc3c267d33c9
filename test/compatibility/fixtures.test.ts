import 'fake-indexeddb/auto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystem, verifyDirectory } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { SCHEMA_VERSION } from '../../adapters/storage/indexeddb/schema.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { CONTENTS, readContents, writeContents } from './contents.ts'
import { type DatabaseDump, restoreDatabase } from './database-dump.ts'
import { type Fixture, fixturesOf } from './fixture.ts'

const FILESYSTEM = fixturesOf('filesystem')
const INDEXEDDB = fixturesOf('indexeddb')
const POSTGRES = fixturesOf('postgres')
const clockOf = ({ writtenAt }: Fixture) => virtualClock({ now: writtenAt + 1000 })

it('the contents are what a new storage returns', async () => {
  const storage = memory()
  await writeContents(storage)
  expect(await readContents(storage, virtualClock({ now: Date.now() }))).toEqual(CONTENTS)
})

describe('a directory', () => {
  async function restored({ data }: Fixture): Promise<string> {
    const directory = mkdtempSync(join(tmpdir(), 'headwater-fixture-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    mkdirSync(directory, { recursive: true })
    for (const [name, bytes] of Object.entries(data as Record<string, Uint8Array>)) {
      writeFileSync(join(directory, name), bytes)
    }
    return directory
  }

  it.each(FILESYSTEM)('of format version %i is opened, and keeps everything', async (_, fixture) => {
    const directory = await restored(fixture)
    expect(await readContents(filesystem(directory), clockOf(fixture))).toEqual(CONTENTS)
    // What was appended continues it.
    const again = await readContents(filesystem(directory), clockOf(fixture))
    expect(again).toMatchObject({ appended: CONTENTS.appended + 1, large: true })
  })

  it.each(FILESYSTEM)(
    'of format version %i is verified, and the report names the version',
    async (version, fixture) => {
      const report = await verifyDirectory(await restored(fixture))
      expect(report).toMatchObject({ problemCount: 0, formatVersions: [version] })
    },
  )

  it('of the present format has a fixture', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'headwater-fixture-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    await writeContents(filesystem(directory))
    const { formatVersions } = await verifyDirectory(directory)
    expect(FILESYSTEM.map(([version]) => version)).toEqual(expect.arrayContaining([...formatVersions]))
  })
})

describe('a database in a browser', () => {
  it.each(INDEXEDDB)('of schema version %i is opened, and keeps everything', async (version, fixture) => {
    const name = `fixture-${version}`
    await restoreDatabase(name, fixture.data as DatabaseDump)
    expect(await readContents(indexedDb(name), clockOf(fixture))).toEqual(CONTENTS)
  })

  it('of the present schema has a fixture', () => {
    expect(INDEXEDDB.map(([version]) => version)).toContain(SCHEMA_VERSION)
  })
})

describe('a PostgreSQL schema', () => {
  it.each(POSTGRES)('of version %i is opened, and keeps everything', async (_, fixture) => {
    const client = await PGlite.create()
    onTestFinished(() => client.close())
    // PGlite has no LZ4. A server decompresses what it stores, so the rows of the dump are plain.
    const sql = (fixture.data as string).replaceAll(/^ALTER TABLE .* SET COMPRESSION lz4;$/gm, '')
    await client.exec(sql)
    // The dump leaves no schema in the path.
    await client.exec('SET search_path TO public')
    const storage = () => postgres({ client, schema: 'fixture' })
    expect(await readContents(storage(), clockOf(fixture))).toEqual(CONTENTS)
  })

  it('of the present version has a fixture', async () => {
    const client = await PGlite.create()
    onTestFinished(() => client.close())
    await writeContents(postgres({ client, schema: 'present' }))
    const { rows } = await client.query<{ version: number }>('SELECT version FROM present.format')
    expect(POSTGRES.map(([version]) => version)).toContain(Number(rows[0]!.version))
  })
})

// Writes the fixtures of the present formats into a directory: see `scripts/write-fixtures.mjs`. Formats that
// are not new are left alone.
import 'fake-indexeddb/auto'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { Cluster } from '../storage/postgres/cluster.ts'
import { formatOf } from '../storage/sqlite/databases.ts'
import { writeContents } from './contents.ts'
import { dumpDatabase } from './database-dump.ts'
import { writeFixture } from './fixture.ts'

const [, , directory] = process.argv as string[]

function write(storage: string, version: number, data: unknown): void {
  if (existsSync(join(directory!, `${storage}-${version}.bin`))) return
  writeFixture(directory!, storage, version, data)
  console.log(`${storage}: version ${version}`)
}

const data = mkdtempSync(join(tmpdir(), 'headwater-fixture-'))
await writeContents(filesystem(data))
const files = readdirSync(data).filter((name) => /^(journal|segment|checkpoint)-\d+$/.test(name))
const contents = Object.fromEntries(files.map((name) => [name, readFileSync(join(data, name))]))
write('filesystem', Object.values(contents)[0]![5]!, contents)

const database = join(data, 'streams.db')
await writeContents(sqlite(database))
write('sqlite', formatOf(database), readFileSync(database))
rmSync(data, { recursive: true })

await writeContents(indexedDb('fixture'))
const dump = await dumpDatabase('fixture')
write('indexeddb', dump.version, dump)

const cluster = await Cluster.start()
const { connectionString } = cluster
await writeContents(postgres({ connectionString, schema: 'fixture' }))
const client = new Client({ connectionString })
await client.connect()
const { rows } = await client.query('SELECT version FROM fixture.format')
await client.end()
const sql = execFileSync('pg_dump', ['--schema=fixture', '--inserts', '--no-owner', connectionString], {
  encoding: 'utf8',
})
// Commands of psql.
write('postgres', Number(rows[0].version), sql.replaceAll(/^\\.*$/gm, ''))
await cluster.dispose()

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Client from '../../adapters/client/index.ts'
import type * as Node from '../../adapters/node/index.ts'
import type * as Filesystem from '../../adapters/storage/filesystem/index.ts'
import type * as Memory from '../../adapters/storage/memory/index.ts'
import type * as Postgres from '../../adapters/storage/postgres/index.ts'
import type * as S3 from '../../adapters/storage/s3/index.ts'
import type * as Sqlite from '../../adapters/storage/sqlite/index.ts'
import type * as Sync from '../../adapters/sync/index.ts'
import type * as Core from '../../src/index.ts'

/** The built package. */
const load = <Module>(name: string): Promise<Module> =>
  import(pathToFileURL(resolve('dist', `${name}.js`)).href)

export const loadNode = () => load<typeof Node>('node')
export const loadClient = () => load<typeof Client>('client')
export const loadSync = () => load<typeof Sync>('sync')

/** In memory if no directory is given. */
export async function openHeadwater(directory?: string): Promise<Core.Engine> {
  const { open } = await load<typeof Core>('index')
  const storage =
    directory === undefined
      ? (await load<typeof Memory>('memory')).memory()
      : (await load<typeof Filesystem>('filesystem')).filesystem(directory)
  return open({ storage, onBackgroundError: failLoudly })
}

export async function openOnSqlite(database: Sqlite.OpenDatabase): Promise<Core.Engine> {
  const { open } = await load<typeof Core>('index')
  const { sqlite } = await load<typeof Sqlite>('sqlite')
  return open({ storage: sqlite(database), onBackgroundError: failLoudly })
}

export async function openPostgres(connectionString: string): Promise<Core.Engine> {
  const { open } = await load<typeof Core>('index')
  const { postgres } = await load<typeof Postgres>('postgres')
  return open({ storage: postgres({ connectionString }), onBackgroundError: failLoudly })
}

export async function openBucket(options: S3.ObjectStorageOptions): Promise<Core.Engine> {
  const { open } = await load<typeof Core>('index')
  const { objectStorage } = await load<typeof S3>('s3')
  return open({ storage: objectStorage(options), onBackgroundError: failLoudly })
}

export function streamNumber(headwater: Core.Engine, number: number): Core.Stream {
  return headwater.basin('my-basin').stream(`streams/${number}`)
}

/** A background failure would make the measured work look faster than it is. */
function failLoudly(error: unknown): void {
  console.error(error)
  process.exit(1)
}

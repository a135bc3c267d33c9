import { join } from 'node:path'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { sqlite } from '../../../../adapters/storage/sqlite/index.ts'
import type { Durability, Storage } from '../../../../src/storage/contract.ts'

/** The storages whose processes are killed, in a directory. SQLite always survives a loss of power. */
export const STORAGES = {
  filesystem: (directory: string, durability?: Durability): Storage => filesystem(directory, { durability }),
  sqlite: (directory: string): Storage => sqlite(join(directory, 'streams.db')),
}

export type StorageName = keyof typeof STORAGES

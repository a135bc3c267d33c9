import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { gunzipSync, gzipSync } from 'node:zlib'

const DIRECTORY = join(import.meta.dirname, 'fixtures')

/** A storage as a release has left it. */
export interface Fixture {
  /** Milliseconds since the epoch: the time at which it was written. */
  readonly writtenAt: number
  /**
   * Of a directory: the bytes of each file. Of SQLite: those of the file. Of a database in a browser: a
   * `DatabaseDump`. Otherwise SQL.
   */
  readonly data: unknown
}

/** The fixtures of a storage, by the version of their format. */
export function fixturesOf(storage: string): readonly (readonly [version: number, Fixture])[] {
  return readdirSync(DIRECTORY)
    .flatMap((name) => {
      const [, version] = new RegExp(`^${storage}-(\\d+)\\.bin$`).exec(name) ?? []
      return version === undefined ? [] : [[Number(version), read(name)] as const]
    })
    .sort(([a], [b]) => a - b)
}

function read(name: string): Fixture {
  return deserialize(gunzipSync(readFileSync(join(DIRECTORY, name))))
}

/** A fixture is written once: a format that was released never changes. */
export function writeFixture(directory: string, storage: string, version: number, data: unknown): void {
  const fixture: Fixture = { writtenAt: Date.now(), data }
  const path = join(directory, `${storage}-${version}.bin`)
  writeFileSync(path, gzipSync(serialize(fixture), { level: 9 }), { flag: 'wx' })
}

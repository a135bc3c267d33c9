// Runs the conformance suite on the built package, in the runtime that executes this file.
import { createRequire, isBuiltin } from 'node:module'
import { join } from 'node:path'
import { conformanceSuite } from '../../dist/conformance.js'
import { filesystem } from '../../dist/filesystem.js'
import { memory } from '../../dist/memory.js'
import { sqlite } from '../../dist/sqlite.js'
import { remove, runTests, temporaryDirectory } from './runtime.mjs'

async function conforms(subject, make) {
  const directory = await temporaryDirectory()
  let made = 0
  const { manifest } = make(join(directory, 'for its manifest'))
  const suite = conformanceSuite({
    manifest,
    make: async () => {
      const path = join(directory, String(made++))
      return {
        storage: make(path),
        reopen: manifest.durability === 'none' ? undefined : async () => make(path),
        dispose: () => remove(path),
      }
    },
  })
  try {
    return await runTests(subject, suite)
  } finally {
    await remove(directory)
  }
}

/** A path where the runtime has SQLite, otherwise a database of a package that `NODE_PATH` leads to. */
function databaseOf(path) {
  if (['bun:sqlite', 'node:sqlite'].some(isBuiltin)) return path
  const Database = createRequire(import.meta.url)('better-sqlite3')
  return new Database(path)
}

const passed = [
  await conforms('headwater/memory', () => memory()),
  await conforms('headwater/filesystem', (path) => filesystem(path)),
  await conforms('headwater/filesystem with durability process-crash', (path) =>
    filesystem(path, { durability: 'process-crash' }),
  ),
  await conforms('headwater/sqlite', (path) => sqlite(databaseOf(path))),
]
process.exit(passed.every(Boolean) ? 0 : 1)

// The examples for `headwater init`, in one compressed file: as files they would be a hundred more in each
// installation, and a quarter larger.
import { readdirSync, readFileSync } from 'node:fs'
import { brotliCompressSync, constants } from 'node:zlib'
import { inProject } from './project.mjs'

const MADE = new Set(['dist', 'data', 'node_modules'])
/** They test examples in the repository, beside what they need there. */
const OWN_TESTS = /^(local-first-chat|shared-todo)\/[^/]*\.test\.ts$/

/** The contents of the files by path, as compressed JSON. */
export function examplesArchive() {
  const files = {}
  for (const path of filesBelow('')) {
    // Of the files at the top, only the README: the rest serves the repository.
    if (OWN_TESTS.test(path) || (!path.includes('/') && path !== 'README.md')) continue
    files[path] = readFileSync(inProject('examples', path), 'utf8')
  }
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24 }
  return brotliCompressSync(JSON.stringify(files), { params })
}

function filesBelow(directory) {
  return readdirSync(inProject('examples', directory), { withFileTypes: true })
    .filter(({ name }) => !MADE.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = directory === '' ? entry.name : `${directory}/${entry.name}`
      return entry.isDirectory() ? filesBelow(path) : [path]
    })
}

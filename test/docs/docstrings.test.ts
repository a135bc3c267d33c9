import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import tsup from '../../tsup.config.ts'
import { undocumented } from './docstrings.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The modules that the subpaths of the package are built of. */
function publicModules(): string[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { entry } = tsup as { readonly entry: Readonly<Record<string, string>> }
  return Object.keys(exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => entry[subpath === '.' ? 'index' : subpath.slice(2)]!)
}

test('every exported symbol and member has a docstring', () => {
  expect(undocumented(publicModules())).toEqual([])
})

// @module-tag slow

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DRIVERS } from '../storage/sqlite/databases.ts'
import { examplesOf, PROJECT, pages } from './examples.ts'

/** The programs of these pages are JavaScript: readers save them as `.mjs`. */
const AS_IT_IS = ['README.md', 'docs/getting-started.md']

const all = await Promise.all(
  (await pages()).map(async (page) => ({ page, examples: await examplesOf(page) })),
)

let directory: string
let folder: string
// Inside the project, so that `headwater` is the package itself as it was built.
beforeAll(async () => {
  directory = await mkdtemp(join(PROJECT, 'dist', 'examples-'))
  folder = await mkdtemp(join(directory, 'run-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

for (const { page, examples } of all.filter(({ examples }) => examples.length > 0)) {
  // Its programs need a Node that has SQLite.
  describe.skipIf(page === 'docs/sqlite.md' && !DRIVERS['node:sqlite'])(page, () => {
    it.each(examples)(
      'the example in line $line prints the documented output',
      async ({ line, code, output }) => {
        const file = join(directory, `${page.replaceAll('/', '-')}-${line}.mjs`)
        const javaScript = async () => (await transform(code, { loader: 'ts', target: 'es2022' })).code
        await writeFile(file, AS_IT_IS.includes(page) ? code : await javaScript())
        const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
          // Some keep files where they run. A reader tries one after the other in one folder.
          cwd: folder,
          timeout: 100_000,
        })
        expect({ stdout: lines(stdout), stderr }).toEqual({ stdout: lines(output), stderr: '' })
      },
    )
  })
}

it('the README and most pages have examples', () => {
  const found = all.filter(({ examples }) => examples.length > 0).map(({ page }) => page)
  expect(found).toEqual(expect.arrayContaining(['README.md', 'docs/getting-started.md', 'docs/errors.md']))
  expect(found.length).toBeGreaterThan(12)
})

/** A live follower prints beside the rest, in an order of its own. */
function lines(output: string): string[] {
  return output.split('\n').sort()
}

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const project = join(import.meta.dirname, '..', '..')

/** What each example prints, in the order in which they stand. */
const EXAMPLES: Record<string, string[]> = {
  'README.md': [
    '0 hello\n1 again\n2 and again\n1 again\n2 and again\n',
    '21.5 °C\n1 0\n',
    '201 active\n',
    '401 200\ncreated\npermission_denied\n',
    'seq_num_mismatch 1\n3\ndurable up to 6\ndurable up to 7\n',
    'the storage failed (quota)\nstorage true seq_num_mismatch 1\n0\nrange_not_satisfiable\ntimers left: 0\n',
    "[ '0 tea', '1 tea' ]\n",
  ],
  'docs/access.md': [
    "[ 'orders' ]\n[ 'tenant-7/orders' ]\ntrue permission_denied\nauthn\n",
    'secret\ndecryption_failed\n',
  ],
  'docs/storage-contract.md': ['true\n'],
  'docs/testing.md': [
    '21.5 °C\n21.6 °C\n2030-01-01T00:02:58.000Z\n',
    "[ 'fulfilled', 'fulfilled', 'rejected' ]\nstorage\n[ 'first', 'a', 'b' ]\ndelay, delay, delay, failure, delay, crash\n",
    'true 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\ntrue\n',
    'fetch failed: ECONNRESET\nterminated\n200\n',
    'tea\ncups\n',
  ],
}

let directory: string
// Inside the project, so that `headwater` is the package itself as it was built.
beforeAll(async () => {
  directory = await mkdtemp(join(project, 'dist', 'examples-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

describe.each(Object.keys(EXAMPLES))('%s', (document) => {
  const expected = EXAMPLES[document]!

  it('has as many examples as are known here', async () => {
    expect(await examplesOf(document)).toHaveLength(expected.length)
  })

  it.each(expected.map((output, index) => [index, output] as const))(
    'example %i runs and prints what it should',
    async (index, output) => {
      const code = (await examplesOf(document))[index]!
      const file = join(directory, `${document.replaceAll('/', '-')}-${index}.mjs`)
      await writeFile(file, code)
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
        // Some keep files where they run.
        cwd: directory,
        timeout: 30_000,
      })
      expect({ stdout: lines(stdout), stderr }).toEqual({ stdout: lines(output), stderr: '' })
    },
  )
})

/** The examples are written in the part of TypeScript that is JavaScript too, so that they run as they stand. */
async function examplesOf(document: string): Promise<string[]> {
  const text = await readFile(join(project, document), 'utf8')
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code!)
}

/** A live follower prints beside the rest, in an order of its own. */
function lines(output: string): string[] {
  return output.split('\n').sort()
}

import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const bin = join(root, 'node_modules/.bin')
const directory = mkdtemp(join(tmpdir(), 'headwater-generated-'))

afterAll(async () => rm(await directory, { recursive: true }))

it('the generated code matches `proto/`', { tags: ['slow'] }, async () => {
  const out = await directory
  // `out` in the template is relative to this directory.
  const args = ['generate', 'proto', '--template', 'proto/buf.gen.yaml', '--output', out]
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, BUF_CACHE_DIR: join(out, 'cache') }
  await promisify(execFile)(join(bin, 'buf'), args, { cwd: root, env })

  const committed = join(root, 'test/wire/gen')
  const generated = join(out, 'test/wire/gen')
  expect(await readdir(generated)).toEqual(await readdir(committed))
  for (const file of await readdir(committed)) {
    expect(await readFile(join(committed, file), 'utf8')).toBe(await readFile(join(generated, file), 'utf8'))
  }
})

// @module-tag slow

import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const PROJECT = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

/** Installs the dependencies of a clone with a script in place of npm. */
async function install(npm: string) {
  const clone = await mkdtemp(join(tmpdir(), 'headwater-clone-'))
  onTestFinished(() => rm(clone, { recursive: true }))
  await mkdir(join(clone, 'scripts'))
  await cp(join(PROJECT, 'scripts', 'project.mjs'), join(clone, 'scripts', 'project.mjs'))
  await writeFile(join(clone, 'package-lock.json'), '{}')
  await mkdir(join(clone, 'bin'))
  await writeFile(join(clone, 'bin', 'npm'), `#!/bin/sh\n${npm}\n`)
  await chmod(join(clone, 'bin', 'npm'), 0o755)
  const script = pathToFileURL(join(clone, 'scripts', 'project.mjs')).href
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    PATH: `${join(clone, 'bin')}${delimiter}${process.env.PATH}`,
  }
  const code = `import('${script}').then((project) => project.ensureInstalled())`
  return { clone, done: run(process.execPath, ['-e', code], { env }) }
}

it('a fresh clone installs development dependencies, even with NODE_ENV=production', async () => {
  const { clone, done } = await install('echo "$@" >> asked')
  await done
  expect(await readFile(join(clone, 'asked'), 'utf8')).toBe('ci --include=dev --loglevel=http\n')
})

it('shows the output of npm only if it fails', async () => {
  const quiet = await install('echo noise; echo more >&2')
  expect(await quiet.done).toEqual({
    stdout: expect.stringMatching(/^Installing dependencies …\nInstalling dependencies: done in \d+ s\n$/),
    stderr: '',
  })
  const failing = await install('echo noise; echo npm http fetch GET 200 x; echo reason >&2; exit 3')
  const { code, stderr } = await failing.done.catch((error) => error)
  // npm writes to two pipes, whose order is lost.
  expect([code, stderr.split('\n').sort()]).toEqual([3, ['', 'noise', 'reason']])
})

import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const PROJECT = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

it('a fresh clone installs what builds, too, also where the environment says `production`', async () => {
  const clone = await mkdtemp(join(tmpdir(), 'headwater-clone-'))
  onTestFinished(() => rm(clone, { recursive: true }))
  await mkdir(join(clone, 'scripts'))
  await cp(join(PROJECT, 'scripts', 'project.mjs'), join(clone, 'scripts', 'project.mjs'))
  await writeFile(join(clone, 'package-lock.json'), '{}')
  // In place of npm: tells what it was asked for.
  await mkdir(join(clone, 'bin'))
  await writeFile(join(clone, 'bin', 'npm'), '#!/bin/sh\necho "$@" >> asked\n')
  await chmod(join(clone, 'bin', 'npm'), 0o755)
  const script = pathToFileURL(join(clone, 'scripts', 'project.mjs')).href
  await run(process.execPath, ['-e', `import('${script}').then((project) => project.ensureInstalled())`], {
    env: {
      ...process.env,
      NODE_ENV: 'production',
      PATH: `${join(clone, 'bin')}${delimiter}${process.env.PATH}`,
    },
  })
  expect(await readFile(join(clone, 'asked'), 'utf8')).toBe('ci --include=dev\n')
})

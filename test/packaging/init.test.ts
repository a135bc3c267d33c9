// @module-tag slow

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'

const PROJECT = resolve(import.meta.dirname, '../..')
const entries = await readdir(join(PROJECT, 'examples'), { withFileTypes: true })
const names = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort()
const TERMINAL = ['--import', 'data:text/javascript,process.stdin.isTTY = true']

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headwater-init-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** Runs `headwater init` of the built package. */
async function init(
  cwd: string,
  args: readonly string[],
  { input = '', options = [] as readonly string[] } = {},
): Promise<{ exitCode: number; out: string; err: string }> {
  const child = spawn(process.execPath, [...options, join(PROJECT, 'dist', 'cli.js'), 'init', ...args], {
    cwd,
  })
  child.stdin.end(input)
  const [out, err, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ])
  return { exitCode, out, err }
}

it('lists every example with a sentence, and fails because none was chosen', async () => {
  const { exitCode, out, err } = await init(await emptyFolder(), [])
  expect(exitCode).toBe(2)
  expect(out.trim().split('\n')).toEqual(names.map((name) => expect.stringMatching(`^${name} +[A-Z].{20,}`)))
  expect(err).toBe('headwater: the name of an example is required: headwater init EXAMPLE\n')
})

it('asks for an example on a terminal', async () => {
  const folder = await emptyFolder()
  const { exitCode, err } = await init(folder, [], { input: 'work-queue\n', options: TERMINAL })
  expect([exitCode, err]).toEqual([0, 'Name of an example:\n'])
  expect(await readdir(folder)).toEqual(['work-queue'])
})

it('takes an empty answer for none', async () => {
  const { exitCode, err } = await init(await emptyFolder(), [], { input: '\n', options: TERMINAL })
  expect(exitCode).toBe(2)
  expect(err).toContain('the name of an example is required: headwater init EXAMPLE')
})

it.each(names)('%s becomes a project of exact versions that is named as its folder', async (name) => {
  const folder = await emptyFolder()
  const { out } = await init(folder, [name, './My app'])
  expect(out).toContain('cd ./My app && npm install && npm run dev')
  const manifest = JSON.parse(await readFile(join(folder, 'My app', 'package.json'), 'utf8'))
  expect(manifest).toMatchObject({ name: 'my-app', scripts: { dev: expect.any(String) } })
  const versions = Object.values({ ...manifest.dependencies, ...manifest.devDependencies })
  expect(versions).toEqual(versions.map(() => expect.stringMatching(/^\d+\.\d+\.\d+$/)))
  expect(await readdir(join(folder, 'My app'))).toEqual(
    expect.arrayContaining(['.gitignore', 'tsconfig.json']),
  )
})

it('rejects an unknown example and a folder that is not empty', async () => {
  const folder = await emptyFolder()
  expect(await init(folder, ['chess'])).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('unknown example `chess`; expected one of level-storage, '),
  })
  await mkdir(join(folder, 'full'))
  await writeFile(join(folder, 'full', 'notes.txt'), 'mine')
  expect(await init(folder, ['work-queue', './full'])).toMatchObject({
    exitCode: 1,
    err: 'headwater: `./full` is not empty\n',
  })
  expect(await readdir(join(folder, 'full'))).toEqual(['notes.txt'])
})

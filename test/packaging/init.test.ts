// @module-tag slow

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type InstalledApp, installApp } from './installed-app.ts'

const PROJECT = resolve(import.meta.dirname, '../..')
const EXAMPLES = join(PROJECT, 'examples')
const run = promisify(execFile)

const names = (await readdir(EXAMPLES, { withFileTypes: true })).flatMap((entry) =>
  entry.isDirectory() && entry.name !== 'shared' ? [entry.name] : [],
)
const hasPage = async (name: string) => (await readdir(join(EXAMPLES, name))).includes('public')
const pages = (await Promise.all(names.map(async (name) => ((await hasPage(name)) ? [name] : [])))).flat()

describe('headwater init, of the packed package', () => {
  let app: InstalledApp
  beforeAll(async () => {
    // Beside the package, whose real path is not in the folder.
    app = await installApp(['react'])
  })
  afterAll(() => app?.remove())

  const headwater = (args: readonly string[]) =>
    run(process.execPath, [join(app.directory, 'node_modules', 'headwater', 'dist', 'cli.js'), ...args], {
      cwd: app.directory,
    })

  /** Writes an example, and puts the packages of its package.json where `npm install` would. */
  async function init(name: string): Promise<string> {
    await headwater(['init', name, `new-${name}`])
    const folder = join(app.directory, `new-${name}`)
    const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    for (const [dependency, range] of Object.entries(dependencies)) {
      expect(range).toMatch(/^\d/)
      const target = join(folder, 'node_modules', dependency)
      const installed = dependency === 'headwater' ? app.directory : PROJECT
      await mkdir(dirname(target), { recursive: true })
      await symlink(join(installed, 'node_modules', dependency), target, 'junction')
    }
    return folder
  }

  /** Resolves to the address of an app. */
  async function start(folder: string): Promise<string> {
    const server = spawn(process.execPath, ['start.mjs'], {
      cwd: folder,
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(server, 'exit')
    onTestFinished(async () => {
      server.kill('SIGTERM')
      await ended
    })
    let printed = ''
    for await (const chunk of server.stdout!) {
      printed += chunk
      if (printed.includes('\n')) break
    }
    return /is at (\S+) /.exec(printed)![1]!
  }

  it('lists every example', async () => {
    const { stdout } = await headwater(['init'])
    expect(stdout.trim().split('\n')).toEqual(names.sort())
  })

  it.each(pages)('%s starts in the folder that it writes', async (name) => {
    const folder = await init(name)
    const url = await start(folder)
    for (const path of ['', '/main.js']) expect((await fetch(`${url}${path}`)).status).toBe(200)
    const readme = await readFile(join(folder, 'README.md'), 'utf8')
    expect(readme).toContain('npm install && npm start')
    expect(readme.length).toBeGreaterThan(200)
  })

  it.each(names.filter((name) => !pages.includes(name)))(
    'the tests of %s pass in its folder',
    async (name) => {
      const folder = await init(name)
      const vitest = join(PROJECT, 'node_modules', 'vitest', 'vitest.mjs')
      const { stdout } = await run(process.execPath, [vitest, 'run'], { cwd: folder })
      expect(stdout).toMatch(/Tests .*\d+ passed/)
    },
  )

  it('rejects an unknown example and a folder that is not empty', async () => {
    await expect(headwater(['init', 'chess'])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('unknown example `chess`; expected one of level-storage, '),
    })
    await mkdir(join(app.directory, 'full'))
    await writeFile(join(app.directory, 'full', 'notes.txt'), 'mine')
    await expect(headwater(['init', 'work-queue', './full'])).rejects.toMatchObject({
      code: 1,
      stderr: 'headwater: `./full` is not empty\n',
    })
    expect(await readdir(join(app.directory, 'full'))).toEqual(['notes.txt'])
  })
})

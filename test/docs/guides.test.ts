// @module-tag slow

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { ended, program } from '../cli/program.ts'
import { namedExample, PROJECT, section } from './examples.ts'

const run = promisify(execFile)
const headwater = program()
const ROOT_TOKEN = 'the-root-token-of-the-guides'

/** A directory inside the project, so that `headwater` is the package itself as it was built. */
async function directoryInProject(): Promise<string> {
  const directory = await mkdtemp(join(PROJECT, 'dist', 'guides-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

it('docs/testing.md: the tests of the app pass', async () => {
  const directory = await directoryInProject()
  for (const name of ['carts', 'carts.test']) {
    await writeFile(join(directory, `${name}.ts`), await namedExample('docs/testing.md', name))
  }
  const outfile = join(directory, 'carts.test.mjs')
  await build({
    entryPoints: [join(directory, 'carts.test.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  const { stdout } = await run(process.execPath, ['--test', '--test-reporter', 'tap', outfile])
  expect(stdout).toContain('# pass 2')
  expect(stdout).toContain('# fail 0')
})

/** A server with one record in `shop/orders`. */
async function startServer(): Promise<{ readonly url: string; readonly token: string }> {
  const server = headwater.start(['serve', '--port', '0', '--storage', 'memory'], {
    HEADWATER_ROOT_TOKEN: ROOT_TOKEN,
  })
  onTestFinished(() => void server.kill('SIGKILL'))
  let welcome = ''
  while (!welcome.includes('http')) welcome += (await once(server.stdout!, 'data'))[0]
  const [url] = /http:\S+/.exec(welcome)!
  const env = { HEADWATER_URL: url, HEADWATER_TOKEN: ROOT_TOKEN }
  expect((await ended(headwater.start(['append', 'shop/orders', 'tea'], env))).code).toBe(0)
  const groups = /`--op-groups (\S+)`/.exec(await section('docs/server.md', 'Back up and restore'))![1]!
  const scope = ['--basins', '*', '--streams', '*', '--op-groups', groups]
  const issued = await ended(headwater.start(['token', 'issue', 'backup', ...scope], env))
  return { url, token: String(issued.out).trim() }
}

/** The blocks of commands in a section, for a shell that finds this `headwater`. */
async function shellBlocks(page: string, title: string): Promise<string[]> {
  const blocks = (await section(page, title)).matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)
  return [...blocks].map(([, commands]) => commands!)
}

async function runInShell(commands: string, cwd: string, env: Readonly<Record<string, string>>) {
  const bin = join(cwd, 'bin')
  await mkdir(bin, { recursive: true })
  const main = join(headwater.directory, 'main.mjs')
  await writeFile(join(bin, 'headwater'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`)
  await writeFile(join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n')
  for (const name of ['headwater', 'npx']) await chmod(join(bin, name), 0o755)
  return run('sh', ['-e', '-c', commands], { cwd, env: { PATH: `${bin}:${process.env.PATH}`, ...env } })
}

it('docs/server.md: the backup can be made with its token, restored and verified', async () => {
  const directory = await directoryInProject()
  const { url, token } = await startServer()
  const [backup, restore] = await shellBlocks('docs/server.md', 'Back up and restore')
  const own = backup!.replace('http://127.0.0.1:8787', url).replace('TOKEN=...', `TOKEN=${token}`)
  expect(own).toContain(token)
  await runInShell(own, directory, {})
  const [made] = (await readdir(directory)).filter((name) => name.endsWith('.ndjson.gz'))
  const dated = restore!
    .replace('headwater-2030-01-31.ndjson.gz', made!)
    .replaceAll('/var/lib/headwater/restored', './restored')
  const { stdout } = await runInShell(dated, directory, { TZ: 'UTC' })
  expect(stdout).toContain('1 record')
})

it('docs/server.md: every metric that it names exists', async () => {
  const { url } = await startServer()
  const headers = { authorization: `Bearer ${ROOT_TOKEN}` }
  const served = await (await fetch(`${url}/metrics`, { headers })).text()
  const page = await readFile(join(PROJECT, 'docs/server.md'), 'utf8')
  const named = [...page.matchAll(/headwater_[a-z_]+/g)].map(([name]) => name)
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter((name) => !new RegExp(`^${name}(_bucket)?[ {]`, 'm').test(served))).toEqual([])
})

it('docs/scaling.md: the copy ends with Ctrl+C, and both have the same tail', async () => {
  const directory = await directoryInProject()
  const { url } = await startServer()
  const [copy, compare] = (await shellBlocks('docs/scaling.md', 'Move')).map((commands) =>
    commands.replaceAll('http://127.0.0.1:8787', url).replaceAll('postgres://localhost/app', './target'),
  )
  const env = { HEADWATER_FROM_TOKEN: ROOT_TOKEN, HEADWATER_TOKEN: ROOT_TOKEN }
  const [, args] = /npx headwater (.*)/.exec(copy!)!
  const copying = headwater.start(args!.split(' '), env, directory)
  let said = ''
  copying.stderr!.on('data', (chunk) => {
    said += chunk
  })
  await expect.poll(() => said).toContain('Everything is copied; following until Ctrl+C')
  copying.kill('SIGINT')
  expect(await once(copying, 'exit')).toEqual([0, null])
  const { stdout } = await runInShell(compare!, directory, env)
  const [before, after] = stdout.trim().split('\n')
  expect(before).toMatch(/^1\b/)
  expect(after).toBe(before)
})

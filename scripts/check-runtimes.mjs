// `npm run check:runtimes` tests the built package in Node, Bun and Deno: the conformance suite on the
// storages that need no browser, the engine on a directory, and the client; in Deno also with the least
// permissions. In workerd, all of them on a Durable Object.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertInstalled, ensureBuilt, inProject, RUNTIMES, run } from './project.mjs'

const CHECKS = ['conformance.mjs', 'engine-on-a-directory.mjs', 'client.mjs']

assertInstalled()
ensureBuilt()

// Not among the dependencies, so that `npm ci` does not download 200 MB of other runtimes.
const installed = mkdtempSync(join(tmpdir(), 'headwater-runtimes-'))
process.on('exit', () => rmSync(installed, { recursive: true, force: true }))
run('npm', [
  ...['install', '--no-save', '--no-audit', '--no-fund', '--prefix', installed],
  ...Object.entries(RUNTIMES).map(([name, version]) => `${name}@${version}`),
  // For Node 20, which has no SQLite. npm may compile it, which takes minutes.
  ...(isBuiltin('node:sqlite') ? [] : ['better-sqlite3@12.11.1']),
])
process.env.NODE_PATH = join(installed, 'node_modules')
const binary = (name) => join(installed, 'node_modules', '.bin', name)

const COMMANDS = [
  { command: process.execPath, args: [] },
  { command: binary('node'), args: ['--no-warnings'] },
  { command: binary('bun'), args: ['run'] },
  { command: binary('deno'), args: ['run', '--allow-all', '--no-lock'] },
  {
    command: binary('deno'),
    args: ['run', '--no-prompt', '--allow-read', '--allow-write', '--allow-net', '--allow-env', '--no-lock'],
    checks: ['least-permissions.mjs'],
  },
]

let failed = 0
for (const { command, args, checks = CHECKS } of COMMANDS) {
  for (const check of checks) {
    const script = inProject('test', 'runtimes', check)
    const { status, error } = spawnSync(command, [...args, script, ...args], { stdio: 'inherit' })
    if (error) console.error(error.message)
    if (status !== 0) failed++
  }
}
const workerd = inProject('test', 'runtimes', 'workerd', 'check.mjs')
if (spawnSync(process.execPath, [workerd, binary('workerd')], { stdio: 'inherit' }).status !== 0) failed++
process.exit(failed === 0 ? 0 : 1)

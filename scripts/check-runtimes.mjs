// `npm run check:runtimes`: what is built, in Node, Bun and Deno: the conformance suite on the storages that need no browser, and the engine on a directory.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, inProject, run } from './project.mjs'

const CHECKS = ['conformance.mjs', 'engine-on-a-directory.mjs']

ensureInstalled()
ensureBuilt()

// Not among the dependencies, for a clone is installed without 200 MB of other runtimes.
const installed = mkdtempSync(join(tmpdir(), 'headwater-runtimes-'))
process.on('exit', () => rmSync(installed, { recursive: true, force: true }))
run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', installed, 'bun@1', 'deno@2'])
const binary = (name) => join(installed, 'node_modules', '.bin', name)

const RUNTIMES = [
  { command: process.execPath, args: [] },
  { command: binary('bun'), args: ['run'] },
  { command: binary('deno'), args: ['run', '--allow-all', '--no-lock'] },
]

let failed = 0
for (const { command, args } of RUNTIMES) {
  for (const check of CHECKS) {
    const script = inProject('scripts', 'runtimes', check)
    const { status, error } = spawnSync(command, [...args, script, ...args], { stdio: 'inherit' })
    if (error) console.error(error.message)
    if (status !== 0) failed++
  }
}
process.exit(failed === 0 ? 0 : 1)

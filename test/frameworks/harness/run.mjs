// Runs the checks against the apps, and prints one table.
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pack } from '../../../scripts/project.mjs'
import { APPS } from '../apps.mjs'
import { App } from './app.mjs'
import { checksOf, limitationsOf } from './checks.mjs'
import { execute, install, installRuntime } from './install.mjs'

/** Apps that compile as they go take minutes on a busy machine. */
const CHECK_MS_MAX = 600_000
const PARALLEL = Math.min(2, availableParallelism())

/** What an app need not say. */
const TEMPLATE = {
  packages: [],
  install: ['--omit=optional', '--ignore-scripts'],
  start: ['node', 'server.js'],
}

/** A line for each failure. */
const failures = []

/**
 * Checks the apps whose names begin with one of these, or all. Resolves to whether every check passed. Where
 * the table has `limited`, a check does not work, and fails as docs/http.md says.
 */
export async function checkFrameworks(wanted) {
  const all = Object.keys(APPS)
  const unknown = wanted.filter((prefix) => !all.some((name) => name.startsWith(prefix)))
  if (unknown.length > 0) throw new Error(`unknown framework ${unknown}; expected ${all.join(', ')}`)
  const waiting = all.filter(
    (name) => wanted.length === 0 || wanted.some((prefix) => name.startsWith(prefix)),
  )
  const directory = await mkdtemp(join(tmpdir(), 'headwater-frameworks-'))
  const table = {}
  try {
    const tarball = await pack(directory)
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await checkApp(next, { ...TEMPLATE, ...APPS[next] }, { directory, tarball, table })
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
  } finally {
    // A browser may still be ending.
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  }
  console.table(table)
  for (const failure of failures) console.log(failure)
  return failures.length === 0
}

/** Installs an app once, and adds a row to the table for each way of running it. */
async function checkApp(name, framework, { directory, tarball, table }) {
  const own = join(directory, name)
  try {
    await install(name, own, tarball, framework)
    const path = framework.runtime ? await installRuntime(framework.runtime, directory) : undefined
    const env = path && { PATH: `${path}${delimiter}${process.env.PATH}` }
    for (const mode of framework.modes ?? [framework]) {
      table[mode.title] = {}
      await checkMode({ ...mode, env: { ...env, ...mode.env } }, own, table[mode.title])
    }
  } catch (error) {
    report(name, 'install', error, error.output)
  }
}

async function checkMode(mode, directory, row) {
  let app
  try {
    for (const [command, ...args] of mode.prepare ?? []) await execute(command, args, directory, mode.env)
    app = await App.start(mode, directory)
  } catch (error) {
    report(mode.title, 'start', error, error.output)
    row.start = 'FAILED'
    return
  }
  try {
    for (const [check, run] of Object.entries(checksOf(mode))) {
      const limitation = limitationsOf(mode)[check]
      try {
        await inTime((limitation ?? run)(app, mode))
        row[check] = limitation ? 'limited' : 'ok'
      } catch (error) {
        report(mode.title, check, error, error.output ?? app.output)
        row[check] = 'FAILED'
      }
    }
  } finally {
    await app.stop()
  }
}

function report(subject, check, error, output = '') {
  failures.push(`${subject}, ${check}: ${error.message ?? error}`)
  console.error(`\n${subject}, ${check}: ${error.stack ?? error}`)
  if (output !== '') console.error(`Output of ${subject}:\n${output.slice(-4_000).trimEnd()}\n`)
}

async function inTime(work) {
  const late = AbortSignal.timeout(CHECK_MS_MAX)
  const isLate = new Promise((_, reject) => late.addEventListener('abort', () => reject(late.reason)))
  await Promise.race([work, isLate])
}

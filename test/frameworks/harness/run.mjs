// Runs the checks against the apps, and prints one table.
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { APPS } from '../apps.mjs'
import { App } from './app.mjs'
import { checksOf, limitationsOf, TITLES } from './checks.mjs'
import { execute, install, installRuntime, pack } from './install.mjs'

/** Apps that compile as they go take minutes on a busy machine. */
const CHECK_MS_MAX = 600_000
const PARALLEL = Math.min(2, availableParallelism())

/** What an app need not say. */
const TEMPLATE = {
  dependencies: {},
  install: ['--omit=optional', '--ignore-scripts'],
  start: ['node', 'server.js'],
}

/** A line for each failure. */
const failures = []

/**
 * Checks the apps with these names, or whose names begin with one of them, or all. Resolves to whether every
 * check passed.
 */
export async function checkFrameworks(wanted) {
  const all = Object.keys(APPS)
  const isWanted = (name) => wanted.length === 0 || wanted.some((prefix) => name.startsWith(prefix))
  const unknown = wanted.filter((prefix) => !all.some((name) => name.startsWith(prefix)))
  if (unknown.length > 0)
    throw new Error(`unknown framework ${unknown.join(', ')}; expected ${all.join(', ')}`)
  const directory = await mkdtemp(join(tmpdir(), 'headwater-frameworks-'))
  try {
    const tarball = await pack(directory)
    const apps = all.filter(isWanted).map((name) => ({ name, framework: { ...TEMPLATE, ...APPS[name] } }))
    // The longest begin first, so that nothing else has to wait for them at the end.
    const waiting = apps.sort((a, b) => stepsOf(b) - stepsOf(a))
    const rows = []
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        rows.push(...(await checkApp(next, directory, tarball)))
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    printTable(rows, TITLES)
    for (const failure of failures) console.log(failure)
    return rows.every(({ cells }) => Object.values(cells).every((cell) => cell !== 'FAILED'))
  } finally {
    // A browser may still be ending.
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** An estimate of how long an app takes. */
function stepsOf({ framework: { modes = [], prepare = [] } }) {
  return modes.length + prepare.length
}

/** Installs an app once and checks each way of running it. Resolves to a row of the table for each. */
async function checkApp({ name, framework }, directory, tarball) {
  const started = performance.now()
  const own = join(directory, name)
  const rows = []
  try {
    await install(name, own, tarball, framework)
    const path = framework.runtime ? await installRuntime(framework.runtime, directory) : undefined
    const env = path && { PATH: `${path}${delimiter}${process.env.PATH}` }
    for (const mode of framework.modes ?? [framework]) {
      rows.push({ title: mode.title, cells: await checkMode(mode, own, env) })
    }
  } catch (error) {
    report(name, 'install', error, error.output)
    rows.push({ title: framework.title ?? name, cells: failedCells(framework) })
  }
  console.log(`${name}: ${((performance.now() - started) / 1000).toFixed(1)} s`)
  return rows
}

async function checkMode(mode, directory, env) {
  const cells = {}
  let app
  try {
    const modeEnv = { ...env, ...mode.env }
    for (const [command, ...args] of mode.prepare ?? []) await execute(command, args, directory, modeEnv)
    app = await App.start({ ...mode, env: modeEnv }, directory)
  } catch (error) {
    report(mode.title, 'start', error, error.output)
    return failedCells(mode)
  }
  try {
    for (const [check, run] of Object.entries(checksOf(mode))) {
      const limitation = limitationsOf(mode)[check]
      try {
        await inTime((limitation ?? run)(app, mode))
        cells[check] = limitation ? 'limited' : 'ok'
      } catch (error) {
        report(mode.title, check, error, error.output ?? app.output)
        cells[check] = 'FAILED'
      }
    }
  } finally {
    await app.stop()
  }
  return cells
}

function failedCells(mode) {
  return Object.fromEntries(Object.keys(checksOf(mode)).map((check) => [check, 'FAILED']))
}

function report(subject, check, error, output = '') {
  failures.push(`${subject}, ${check}: ${error.message ?? error}`)
  console.error(`\n${subject}, ${check}: ${error.stack ?? error}`)
  if (output !== '') console.error(`Output of ${subject}:\n${output.slice(-4_000).trimEnd()}\n`)
}

async function inTime(work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished within ${CHECK_MS_MAX} ms`)), CHECK_MS_MAX)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

const LEGEND = {
  limited: 'does not work there, and fails as docs/frameworks.md says',
  '–': 'concerns what the app does not have',
}

/** Prints a row for each app and a column for each check. */
function printTable(rows, checks) {
  const sorted = [...rows].sort((a, b) => (a.title < b.title ? -1 : 1))
  const table = [
    ['', ...checks],
    ...sorted.map(({ title, cells }) => [title, ...checks.map((c) => cells[c] ?? '–')]),
  ]
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)))
  console.log('')
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  '))
  console.log('')
  for (const [cell, meaning] of Object.entries(LEGEND)) {
    if (table.flat().includes(cell)) console.log(`${cell}: ${meaning}`)
  }
}

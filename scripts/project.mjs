import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

export function inProject(...path) {
  return join(root, ...path)
}

/** Installs the dependencies if the lock file has changed since the last installation. */
export function ensureInstalled() {
  // npm writes its own copy of the lock file last.
  const installed = modifiedAt(inProject('node_modules', '.package-lock.json'))
  // Includes the development dependencies, even if `NODE_ENV` is `production`.
  if (installed < modifiedAt(inProject('package-lock.json'))) {
    console.log('Installing dependencies …')
    runQuietly('npm', ['ci', '--include=dev'])
  }
}

/** Builds the JavaScript, without type declarations, if it is missing or older than a source. */
export function ensureBuilt() {
  const built = modifiedAt(inProject('dist', 'cli.js'))
  const sources = ['src', 'adapters', 'package.json', 'tsconfig.json', 'tsup.config.ts']
  if (Math.max(...sources.map((path) => newestIn(inProject(path)))) > built) {
    console.log('Building …')
    runQuietly('npm', ['run', 'build:js'])
  }
}

export function build() {
  run('npm', ['run', 'build'])
}

/** Runs a command in the project. Exits with its code if that is not 0. */
export function run(command, args) {
  exitUnlessDone(spawn(command, args, { stdio: 'inherit' }))
}

/** Runs a command in the project, and shows its output only if it fails. */
function runQuietly(command, args) {
  const done = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: Number.POSITIVE_INFINITY,
  })
  if (done.status !== 0) process.stderr.write(`${done.stdout ?? ''}${done.stderr ?? ''}`)
  exitUnlessDone(done)
}

function spawn(command, args, options) {
  // On Windows, npm is a script, which only a shell can start.
  const shell = process.platform === 'win32'
  return spawnSync(command, args, { cwd: root, shell, ...options })
}

function exitUnlessDone({ status, error }) {
  if (error) console.error(error.message)
  if (status !== 0) process.exit(status ?? 1)
}

/** Returns 0 if the path does not exist. */
function modifiedAt(path) {
  return existsSync(path) ? statSync(path).mtimeMs : 0
}

function newestIn(path) {
  if (!existsSync(path)) return 0
  if (!statSync(path).isDirectory()) return modifiedAt(path)
  return Math.max(modifiedAt(path), ...readdirSync(path).map((name) => newestIn(join(path, name))))
}

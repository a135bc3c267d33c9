import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

export function inProject(...path) {
  return join(root, ...path)
}

/** Installs what the lock file says when that has not been done since the lock file changed. */
export function ensureInstalled() {
  // npm writes its own copy of the lock file last.
  const installed = modifiedAt(inProject('node_modules', '.package-lock.json'))
  // With what builds, also where the environment says `production`.
  if (installed < modifiedAt(inProject('package-lock.json'))) run('npm', ['ci', '--include=dev'])
}

/** Builds what runs, without the type declarations, when nothing is built or something it is built from is newer. */
export function ensureBuilt() {
  const built = modifiedAt(inProject('dist', 'cli.js'))
  const sources = ['src', 'adapters', 'package.json', 'tsconfig.json', 'tsup.config.ts']
  if (Math.max(...sources.map((path) => newestIn(inProject(path)))) > built) run('npm', ['run', 'build:js'])
}

export function build() {
  run('npm', ['run', 'build'])
}

/** Runs a command in the project and ends this process with its exit code when that is not 0. */
export function run(command, args) {
  // On Windows npm is a script, which only a shell starts.
  const shell = process.platform === 'win32'
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', shell })
  if (error) console.error(error.message)
  if (status !== 0) process.exit(status ?? 1)
}

/** 0 for what does not exist. */
function modifiedAt(path) {
  return existsSync(path) ? statSync(path).mtimeMs : 0
}

function newestIn(path) {
  if (!existsSync(path)) return 0
  if (!statSync(path).isDirectory()) return modifiedAt(path)
  return Math.max(modifiedAt(path), ...readdirSync(path).map((name) => newestIn(join(path, name))))
}

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The runtimes that checks install from npm, each with its version. */
export const RUNTIMES = { bun: '1.4.5', deno: '2.9.6', node: '24.21.0', workerd: '1.20261117.1' }

const root = dirname(dirname(fileURLToPath(import.meta.url)))
/** Returns the options of a command. On Windows npm is a script, which only a shell can start. */
const optionsOf = (command) => ({ cwd: root, shell: process.platform === 'win32' && command === 'npm' })

export function inProject(...path) {
  return join(root, ...path)
}

/** Ends with a hint unless the dependencies are those of the lock file. */
export function assertInstalled() {
  if (isInstalled()) return
  console.error('The dependencies are missing or not those of package-lock.json: run `npm ci` first.')
  process.exit(1)
}

/** Installs the dependencies if the lock file has changed since the last installation. */
export function ensureInstalled() {
  // Includes the development dependencies, even if `NODE_ENV` is `production`.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund']
  if (!isInstalled()) runQuietly('Installing the dependencies, which takes about half a minute', 'npm', args)
}

/** Whether the last installation was of the present lock file, of which npm writes its own copy last. */
function isInstalled() {
  const installed = modifiedAt(inProject('node_modules', '.package-lock.json'))
  return installed >= modifiedAt(inProject('package-lock.json'))
}

/** Builds the JavaScript if it is missing or older than a source, and declarations if they are wanted. */
export function ensureBuilt({ withDeclarations = false } = {}) {
  const sources = ['src', 'adapters', 'package.json', 'tsconfig.json', 'tsup.config.ts']
  const newest = Math.max(...sources.map((path) => newestIn(inProject(path))))
  const isOld = newest > modifiedAt(inProject('dist', 'cli.js'))
  // A build begins without the declarations of the one before.
  const isPartial = withDeclarations && !existsSync(inProject('dist', 'types'))
  const script = withDeclarations ? 'build' : 'build:js'
  if (isOld || isPartial) runQuietly('Building', 'npm', ['run', script])
}

export function build() {
  run('npm', ['run', 'build'])
}

/** Packs the built package into a directory. Resolves to the path of the tarball. */
export async function pack(directory) {
  const args = ['pack', '--json', '--pack-destination', directory]
  const { stdout } = await promisify(execFile)('npm', args, optionsOf('npm'))
  return join(directory, JSON.parse(stdout)[0].filename)
}

/** Runs a command in the project. Exits with its code if that is not 0. */
export function run(command, args) {
  exitUnlessDone(spawnSync(command, args, { ...optionsOf(command), stdio: 'inherit' }))
}

/** Runs a command in the project. Returns its code, which is 1 if it could not be run to its end. */
export function runToEnd(command, args) {
  return spawnSync(command, args, { ...optionsOf(command), stdio: 'inherit' }).status ?? 1
}

/** Runs a command as `run` does, and prints the time that it took. */
export function runTimed(command, args) {
  const startedAt = performance.now()
  const { status, error } = spawnSync(command, args, { ...optionsOf(command), stdio: 'inherit' })
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  const cpuSeconds = childCpuSeconds()
  console.log(`${seconds} s${cpuSeconds === undefined ? '' : `, ${cpuSeconds} s of CPU`}`)
  exitUnlessDone({ status, error })
}

/** Returns the CPU time of all ended children and their children, which only Linux tells. */
function childCpuSeconds() {
  if (!existsSync('/proc/self/stat')) return undefined
  // The name of the program may contain spaces. Times are in hundredths of a second.
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return Math.round((Number(fields[13]) + Number(fields[14])) / 100)
}

/** Runs a command in the project. Shows its output only if it fails. */
function runQuietly(title, command, args) {
  console.log(`${title} …`)
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    ...optionsOf(command),
    encoding: 'utf8',
  })
  if (status !== 0) process.stderr.write(`${stdout}${stderr}`)
  exitUnlessDone({ status, error })
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

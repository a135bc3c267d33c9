import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

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
export async function ensureInstalled() {
  if (isInstalled()) return
  const { packages = {} } = JSON.parse(readFileSync(inProject('package-lock.json'), 'utf8'))
  // Includes the development dependencies, even if `NODE_ENV` is `production`.
  await runWithProgress('Installing dependencies', 'npm', ['ci', '--include=dev', '--loglevel=http'], {
    requests: /^npm http /,
    // Other requests ask what versions a package has.
    step: /^npm http .*\.tgz/,
    of: `${Object.keys(packages).length - 1} packages`,
  })
}

/** Whether the last installation was of the present lock file, of which npm writes its own copy last. */
function isInstalled() {
  const installed = modifiedAt(inProject('node_modules', '.package-lock.json'))
  return installed >= modifiedAt(inProject('package-lock.json'))
}

/** Builds the JavaScript, without type declarations, if it is missing or older than a source. */
export async function ensureBuilt() {
  const built = modifiedAt(inProject('dist', 'cli.js'))
  const sources = ['src', 'adapters', 'package.json', 'tsconfig.json', 'tsup.config.ts']
  if (Math.max(...sources.map((path) => newestIn(inProject(path)))) > built) {
    await runWithProgress('Building', 'npm', ['run', 'build:js'])
  }
}

export function build() {
  run('npm', ['run', 'build'])
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

const STILL_RUNNING_MS = 10_000

/**
 * Runs a command in the project. Shows its progress, and its output only if it fails.
 *
 * @param progress Patterns of the lines that are not shown if it fails, and of those that count as steps, and
 *   how many steps there will be at most.
 */
async function runWithProgress(title, command, args, { requests, step, of } = {}) {
  const startedAt = performance.now()
  const isTerminal = process.stdout.isTTY
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`
  const output = []
  let steps = 0
  const line = () => [title, ...(steps > 0 ? [`${steps} of ${of}`] : []), seconds()].join(', ')
  const show = () => {
    if (isTerminal) process.stdout.write(`\r\u001b[2K${line()}`)
    else console.log(line())
  }
  console.log(`${title} …`)
  const timer = setInterval(show, isTerminal ? 200 : STILL_RUNNING_MS)
  const child = spawn(command, args, { ...optionsOf(command), stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (text) => {
      output.push(`${text}\n`)
      if (step?.test(text)) steps++
    })
  }
  const done = await new Promise((resolve) => {
    child.on('error', (error) => resolve({ status: 1, error }))
    child.on('close', (status) => resolve({ status }))
  })
  clearInterval(timer)
  if (isTerminal) process.stdout.write('\r\u001b[2K')
  if (done.status === 0) console.log(`${title}: done in ${seconds()}`)
  else process.stderr.write(output.filter((text) => !requests?.test(text)).join(''))
  exitUnlessDone(done)
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

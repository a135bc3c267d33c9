import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { reservedPort } from '../support/port.ts'

const PROJECT = resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)

/** Writes an example with `headwater init`, and installs it from the registry, without a lock file. */
export async function install(name: string, tarball: string): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'headwater-example-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true, maxRetries: 10 }))
  const folder = join(parent, 'my-app')
  await run(parent, process.execPath, join(PROJECT, 'dist', 'cli.js'), 'init', name, folder)
  await run(folder, 'npm', 'install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', tarball)
  return folder
}

/** Resolves to the standard output of a command. Rejects with all of its output if it fails. */
export async function run(cwd: string, command: string, ...args: readonly string[]): Promise<string> {
  try {
    const env = { ...process.env, VITEST: undefined, NODE_ENV: undefined }
    const { stdout } = await execute(command, args, { cwd, env, shell: process.platform === 'win32' })
    return stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  }
}

/** Serves a built example until the test ends: it fails if the server printed an error. */
export async function preview(folder: string) {
  const port = await reservedPort()
  let stop = async () => {}
  let errors = ''
  const start = async () => {
    const vite = join('node_modules', 'vite', 'bin', 'vite.js')
    const child = spawn(process.execPath, [vite, 'preview', '--port', `${port}`, '--strictPort'], {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const exited = once(child, 'exit')
    child.stderr.on('data', (chunk) => {
      errors += chunk
    })
    stop = async () => {
      stop = async () => {}
      child.kill('SIGTERM')
      await exited
    }
    let printed = ''
    child.stdout.on('data', (chunk) => {
      printed += chunk
    })
    await expect.poll(() => printed + errors).toContain('Local')
  }
  await start()
  onTestFinished(async () => {
    await stop()
    expect(errors).toBe('')
  })
  return { url: `http://localhost:${port}/`, start, stop: () => stop() }
}

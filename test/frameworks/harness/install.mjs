import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { RUNTIMES } from '../../../scripts/project.mjs'
import { recipeOf } from './recipes.mjs'

const APPS = join(import.meta.dirname, '..')
const INSTALL = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline']

/** Writes an app into a directory and installs its dependencies and the tarball. */
export async function install(name, directory, tarball, { packages, install, edits, replaced = {} }) {
  const harness = (file) => join(import.meta.dirname, file)
  await mkdir(directory, { recursive: true })
  for (const file of ['opened.js', 'streams.js', 'engine.js']) await cp(harness(file), join(directory, file))
  for (const [file, code] of await recipeOf(name, edits)) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await writeFile(join(directory, file), code)
  }
  if (existsSync(join(APPS, name))) await cp(join(APPS, name), directory, { recursive: true })
  for (const [file, by] of Object.entries(replaced)) await cp(harness(by), join(directory, file))
  const manifest = {
    name: `${name}-app`,
    private: true,
    type: 'module',
  }
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest))
  await execute('npm', [...INSTALL, '--save-exact', ...install, ...packages, tarball], directory)
}

const installedRuntimes = new Map()

/** Installs a runtime, once. It is no dependency of an app. Resolves to the folder of its command. */
export async function installRuntime(runtime, directory) {
  const prefix = join(directory, runtime)
  if (!installedRuntimes.has(runtime)) {
    const command = ['--prefix', prefix, `${runtime}@${RUNTIMES[runtime]}`]
    installedRuntimes.set(runtime, execute('npm', [...INSTALL, ...command], directory))
  }
  await installedRuntimes.get(runtime)
  return join(prefix, 'node_modules', '.bin')
}

/** Runs a command. Rejects with its output if it fails. */
export async function execute(command, args, cwd, env) {
  try {
    const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }
    return await promisify(execFile)(command, args, options)
  } catch (error) {
    throw Object.assign(error, { output: `${error.stdout}${error.stderr}` })
  }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as bundle, type OutputFile } from 'esbuild'
import { afterAll, beforeAll } from 'vitest'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'

const REQUIRE = `import { createRequire as requireFrom } from 'node:module'
const require = requireFrom(import.meta.url)`

let building: Promise<OutputFile[]> | undefined

/** Bundles the program into modules of one directory. The test files of a process share them. */
async function build(): Promise<OutputFile[]> {
  const { outputFiles } = await bundle({
    entryPoints: [fileURLToPath(new URL('../../adapters/cli/main.ts', import.meta.url))],
    outdir: '/',
    outExtension: { '.js': '.mjs' },
    write: false,
    splitting: true,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    external: ['libsodium-wrappers'],
    plugins: [bundledAssets],
    // Packages that are CommonJS ask for Node's modules.
    banner: { js: REQUIRE },
  })
  return outputFiles
}

/**
 * The command line as a program, created for the tests of a file, in a directory that is removed after
 * them.
 */
export function program(): {
  readonly directory: string
  start(args: readonly string[], env?: Readonly<Record<string, string>>, cwd?: string): ChildProcess
} {
  let directory = ''
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headwater-cli-'))
    building ??= build()
    for (const { path, contents } of await building)
      await writeFile(join(directory, basename(path)), contents)
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))
  return {
    get directory() {
      return directory
    },
    start: (args, env = {}, cwd) =>
      spawn(process.execPath, [join(directory, 'main.mjs'), ...args], {
        env: { PATH: process.env.PATH, ...env },
        cwd,
      }),
  }
}

export interface Ended {
  readonly code: number | null
  readonly out: Buffer
  readonly err: string
}

/** Resolves to the output of a process when it has ended. */
export function ended(child: ChildProcess): Promise<Ended> {
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout!.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr!.on('data', (chunk: Buffer) => err.push(chunk))
  return new Promise((resolve) => {
    child.on('close', (code) => {
      resolve({ code, out: Buffer.concat(out), err: Buffer.concat(err).toString() })
    })
  })
}

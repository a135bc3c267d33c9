import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'
import { afterEachFile } from './after-file.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const directories: string[] = []

/**
 * Bundles a TypeScript program for Node and returns the path of the bundle. Without `directory`, the bundle
 * is beside the installed packages, and is deleted after the tests of the file; with `directory` it contains
 * the packages, and any user may run it.
 */
export async function bundleProgram(source: URL, directory?: string): Promise<string> {
  const outfile = join(directory ?? cacheDirectory(), `${basename(source.pathname, '.ts')}.mjs`)
  await build({
    entryPoints: [fileURLToPath(source)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    sourcemap: 'inline',
    plugins: [bundledAssets],
    ...(directory === undefined && { packages: 'external' }),
  })
  return outfile
}

function cacheDirectory(): string {
  mkdirSync(CACHE, { recursive: true })
  const directory = mkdtempSync(join(CACHE, 'test-'))
  directories.push(directory)
  return directory
}

afterEachFile(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true })
})

/** A process that prints a line for each thing it does. */
export class Child {
  readonly lines: string[] = []
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>
  #onLine: () => void = () => {}

  constructor(program: string, args: readonly string[]) {
    this.#process = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#ended = once(this.#process, 'close')
    createInterface({ input: this.#process.stdout! }).on('line', (line) => {
      this.lines.push(line)
      this.#onLine()
    })
  }

  get pid(): number {
    return this.#process.pid!
  }

  get hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null
  }

  send(line: string): void {
    this.#process.stdin!.write(`${line}\n`)
  }

  /** Resolves when it has printed `count` lines, or has ended. */
  async printed(count: number): Promise<void> {
    while (this.lines.length < count && !this.hasEnded) {
      const line = new Promise<void>((resolve) => {
        this.#onLine = resolve
      })
      await Promise.race([line, this.#ended])
    }
  }

  /** Kills it. Resolves when all that it printed has been read. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  async end(): Promise<void> {
    this.#process.stdin!.end()
    await this.#ended
  }
}

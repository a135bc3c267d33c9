import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** Makes a program of one of the `children`, in the directory, and returns its path. */
export async function childProgram(name: string, directory: string): Promise<string> {
  const outfile = join(directory, `${name}.mjs`)
  await build({
    entryPoints: [fileURLToPath(new URL(`children/${name}.ts`, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
  })
  return outfile
}

/** A process that tells what it does in lines. */
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

  /** Resolves when it has told so many lines, or has ended. */
  async told(count: number): Promise<void> {
    while (this.lines.length < count && !this.hasEnded) {
      const line = new Promise<void>((resolve) => {
        this.#onLine = resolve
      })
      await Promise.race([line, this.#ended])
    }
  }

  /** Resolves when it is gone and all that it told was heard. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  async end(): Promise<void> {
    this.#process.stdin!.end()
    await this.#ended
  }
}

import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Info, Params, Turn, Usage } from './host.ts'

/** Beside the bundle of the benchmark, or around that of a program which starts others. */
const PROGRAMS = fileURLToPath(
  new URL(import.meta.url.includes('/programs/') ? '.' : 'programs/', import.meta.url),
)

/** A process that runs one of the programs beside this one. Calls are answered one at a time. */
export class Child {
  readonly #process: ChildProcess

  constructor(program: string) {
    const path = join(PROGRAMS, `${program}.js`)
    this.#process = fork(path, { execArgv: ['--expose-gc'], serialization: 'advanced' })
  }

  prepare = (side: string, params: Params) => this.#call<Info>('prepare', side, params)
  reset = () => this.#call<void>('reset')
  turn = (count: number) => this.#call<Turn>('turn', count)
  usage = () => this.#call<Usage>('usage')
  residentBytes = () => this.#call<number>('residentBytes')

  async close(): Promise<void> {
    await this.#call<void>('close')
    const exited = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.disconnect()
    await exited
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  #call<Value>(method: string, ...args: unknown[]): Promise<Value> {
    return new Promise((resolve, reject) => {
      const exited = (code: number | null) => {
        this.#process.off('message', answered)
        reject(new Error(`the process exited with code ${code} during \`${method}\``))
      }
      const answered = ({ value, error }: { value: Value; error?: string }) => {
        this.#process.off('exit', exited)
        if (error === undefined) resolve(value)
        else reject(new Error(error))
      }
      this.#process.once('message', answered as never)
      this.#process.once('exit', exited)
      this.#process.send({ method, args })
    })
  }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface ChildOptions {
  readonly nodeOptions: readonly string[]
  /** Passed as JSON. The child reads it with {@link parametersOfChild}. */
  readonly parameters: unknown
  /** A child that prints nothing for this long is killed. */
  readonly silenceMs: number
  /** The same before its first line: a busy machine loads programs slowly. Default: `silenceMs`. */
  readonly startMs?: number
  readonly onLine: (line: string) => void
}

export type ChildEnding =
  | { readonly kind: 'ended' }
  /** `problem` includes the end of the standard error. */
  | { readonly kind: 'failed'; readonly problem: string }

const ERROR_CHARACTERS_MAX = 4_000

/** Runs a Node program until it exits or has been silent for too long. */
export async function runChild(program: string, options: ChildOptions): Promise<ChildEnding> {
  const { silenceMs, startMs = silenceMs, onLine } = options
  const args = [...options.nodeOptions, '--enable-source-maps', program, JSON.stringify(options.parameters)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let isSilent = false
  const onSilence = () => {
    isSilent = true
    child.kill('SIGKILL')
  }
  let timer = setTimeout(onSilence, startMs)
  let errorOutput = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errorOutput = (errorOutput + String(chunk)).slice(-ERROR_CHARACTERS_MAX)
  })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    clearTimeout(timer)
    timer = setTimeout(onSilence, silenceMs)
    onLine(line)
  })
  const [[code, signal]] = await Promise.all([once(child, 'close'), once(lines, 'close')])
  clearTimeout(timer)
  if (code === 0) return { kind: 'ended' }
  const problem = isSilent ? 'prints nothing any more' : `exits with ${signal ?? code}`
  return { kind: 'failed', problem: `${problem}\n${errorOutput}`.trim() }
}

/** The parameters of this child process. */
export function parametersOfChild<Parameters>(): Parameters {
  return JSON.parse(process.argv[2]!)
}

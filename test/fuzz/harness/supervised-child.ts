import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Message, Orders } from './messages.ts'

/** An explosion must not pass for work. */
const HEAP_MIB = 256
const OUTPUT_CHARACTERS_MAX = 4000
/** Until something is heard for the first time: a busy machine loads programs slowly. */
const STARTING_MS_MAX = 120_000

type Place = Pick<Extract<Message, { kind: 'at' }>, 'target' | 'index'>

export type Ending =
  | { readonly kind: 'end' }
  | {
      readonly kind: 'broken'
      readonly problem: string
      /** Where it was heard last. */
      readonly at: Place | undefined
    }

/** Runs a child to its end, or until nothing is heard of it for too long: the one clock of a campaign. */
export async function runChild(
  program: string,
  orders: Orders,
  silenceMs: number,
  listen: (message: Message) => void,
): Promise<Ending> {
  const options = ['--expose-gc', `--max-old-space-size=${HEAP_MIB}`, '--enable-source-maps']
  const child = spawn(process.execPath, [...options, program, JSON.stringify(orders)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let at: Place | undefined
  let hasEnded = false
  let isSilent = false
  let output = ''
  const silence = () => {
    isSilent = true
    child.kill('SIGKILL')
  }
  let timer = setTimeout(silence, STARTING_MS_MAX)
  child.stderr.on('data', (chunk: Buffer) => {
    output = (output + String(chunk)).slice(-OUTPUT_CHARACTERS_MAX)
  })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    clearTimeout(timer)
    timer = setTimeout(silence, silenceMs)
    const message: Message = JSON.parse(line)
    if (message.kind === 'at') at = message
    if (message.kind === 'end') hasEnded = true
    listen(message)
  })
  const [code, signal] = await Promise.all([once(child, 'close'), once(lines, 'close')]).then(([how]) => how)
  clearTimeout(timer)
  if (hasEnded && code === 0) return { kind: 'end' }
  const problem = isSilent ? 'nothing is heard of it any more' : `it dies (${signal ?? code})`
  return { kind: 'broken', problem: `${problem}\n${output}`.trim(), at }
}

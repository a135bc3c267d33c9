import { randomInt, randomUUID } from 'node:crypto'
import { concatBytes } from '../../src/model/bytes.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'
import { timeText } from '../../src/wire/json.ts'
import type { CliContext } from './context.ts'
import type { InputBatch } from './input-reader.ts'
import { compileTemplate, type Fields, fieldLines } from './template.ts'

/** Records that a command makes of a template. */
export interface Generation {
  readonly template: ReturnType<typeof recordTemplate>
  readonly headers: readonly Header[]
  /** Infinity until the signal. */
  readonly count: number
  /** Records a second; infinity for as many as are accepted. */
  readonly rate: number
}

/** The shortest step in which records are due if there is a rate. */
const STEP_MS = 10

/** Yields records when they are due, those due together in one batch. Ends when the signal aborts. */
export async function* generatedBatches(
  { template, headers, count, rate }: Generation,
  { clock, now }: Pick<CliContext, 'clock' | 'now'>,
  signal: AbortSignal,
): AsyncGenerator<InputBatch> {
  const startedAt = now()
  for (let made = 0; made < count && !signal.aborted; ) {
    const due = Math.min(count, rate === Number.POSITIVE_INFINITY ? count : dueAt(now() - startedAt, rate))
    if (made >= due) {
      await wait(Math.max(STEP_MS, (made * 1000) / rate - (now() - startedAt)), clock, signal)
      continue
    }
    const records = []
    let bytes = 0
    let metered = 0
    while (made < due && records.length < BATCH_RECORDS_MAX) {
      const body = template({ index: made + 1, now: clock.now() })
      metered += meteredBytesOf(headers, body)
      // A record that is left out is made again: its time and its random parts differ.
      if (metered > BATCH_METERED_BYTES_MAX && records.length > 0) break
      records.push({ headers, body })
      bytes += body.length
      made++
    }
    yield { records, bytes }
  }
}

/** The first record is due at once. */
function dueAt(elapsedMs: number, rate: number): number {
  return 1 + Math.floor((elapsedMs * rate) / 1000)
}

/** Resolves after the time, or when the signal aborts. */
function wait(ms: number, clock: CliContext['clock'], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(ms, done)
    signal.addEventListener('abort', done, { once: true })
    function done() {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}

/** The values that differ between generated records. */
interface Generated {
  /** The number of the record, beginning with 1. */
  readonly index: number
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

const RANDOM_LETTERS = 10
const RANDOM_MAX = 100
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

const FIELDS: Fields<Generated> = {
  i: { description: 'number of the record, from 1', valueOf: ({ index }) => String(index) },
  T: { description: 'time in milliseconds since 1970', valueOf: ({ now }) => String(now) },
  D: { description: 'date and time, such as 2030-01-31T12:00:00.5Z', valueOf: ({ now }) => timeText(now) },
  u: { description: 'random UUID', valueOf: () => randomUUID() },
  n: {
    description: `random number from 0 to ${RANDOM_MAX}`,
    valueOf: () => String(randomInt(RANDOM_MAX + 1)),
  },
  r: {
    description: `${RANDOM_LETTERS} random letters and digits`,
    valueOf: () => Array.from({ length: RANDOM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join(''),
  },
}

/** Compiles the TEXT of `append --count`. @throws CliError with exit code 2. */
export function recordTemplate(text: string): (generated: Generated) => Uint8Array {
  const partsOf = compileTemplate(text, 'TEXT', FIELDS)
  return (generated) => concatBytes(partsOf(generated))
}

/** Describes the fields. */
export const TEMPLATE_LINES = fieldLines(FIELDS)

import type { RetentionPolicy } from '../../src/index.ts'
import { durationMs } from './arguments.ts'
import { CliError, quoteArg } from './errors.ts'

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/**
 * Parses the value of `--retention`: `forever` (or `infinite`), or a duration such as `30d`.
 *
 * @throws CliError with exit code 2.
 */
export function parseRetention(text: string): RetentionPolicy {
  if (text === 'forever' || text === 'infinite') return 'infinite'
  const ms = durationMs(text)
  if (ms !== undefined) return { ageSeconds: ms / 1000 }
  throw new CliError(
    2,
    `invalid retention ${quoteArg(text)}; \`--retention\` must be \`forever\`, or a positive integer with s, m, h or d, such as 30d`,
  )
}

/** Returns the retention in the HTTP API. */
export function retentionForm(policy: RetentionPolicy): object {
  return policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }
}

/** Says how long records are kept: `forever`, or `for 30 days`. */
export function retentionText(policy: RetentionPolicy): string {
  if (policy === 'infinite') return 'forever'
  const { ageSeconds } = policy
  const [noun, seconds] = UNITS.find(([, seconds]) => ageSeconds % seconds === 0)!
  const count = ageSeconds / seconds
  return `for ${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

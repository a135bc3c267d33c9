import { invalid } from '../../src/model/errors.ts'

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Limits the text of an error. */
const SHOWN_CHARACTERS_MAX = 100

/**
 * Parses `'500ms'`, `'60s'`, `'2m'`, `'1h'`, `'7d'` (decimals allowed) or a number of milliseconds. Throws
 * `invalid`.
 */
export function millisecondsIn(duration: number | string): number {
  const ms = typeof duration === 'number' ? duration : parse(duration)
  if (!(ms >= 0 && ms <= Number.MAX_SAFE_INTEGER)) {
    throw invalid(`invalid duration: ${String(duration).slice(0, SHOWN_CHARACTERS_MAX)}`, 'duration')
  }
  return ms
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  return match === null ? Number.NaN : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
}

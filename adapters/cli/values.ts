import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from '@commander-js/extra-typings'
import type { Basin, Headwater, RetentionPolicy, Stream } from '../../src/index.ts'
import { type ResourceKind, type ResourceSet, resourceSetProblem } from '../../src/model/access.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import type { CliContext } from './context.ts'
import { CliError, printable, quoteArg, quoteName, quotePath, redact, validateArgument } from './errors.ts'

/** Rejects the value of an argument. The message of commander names the argument and quotes the value. */
export function fail(rule: string): never {
  throw new InvalidArgumentError(rule)
}

/** Returns a parser of integers from `min` to `max`, by default 2^53 - 1. */
export function integer(min = 0, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : fail(`It must be an integer from ${min} to ${max}`)
  }
}

export function nonEmpty(text: string): string {
  return text === '' ? fail('It must not be empty') : text
}

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Parses a positive duration, such as `90s` or `30d`, to milliseconds; undefined if it is none. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^([0-9]{1,12})([smhd])$/.exec(text) ?? []
  const ms = count === undefined ? 0 : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  return ms > 0 ? ms : undefined
}

export function duration(text: string): number {
  return durationMs(text) ?? fail('It must be a positive integer with s, m, h or d, such as 90s or 30d')
}

/** Midnight of these days, in the time zone of the computer. */
const DAYS: Readonly<Record<string, number>> = { today: 0, yesterday: -1 }

/**
 * Returns a parser of times: milliseconds since the Unix epoch, RFC 3339, `now`, `today`, `yesterday`, or a
 * duration before now such as `-15m` or `15m`. A date is midnight UTC, `today` and `yesterday` are local
 * midnights.
 */
export function time({ clock }: Pick<CliContext, 'clock'>): (text: string) => number {
  return (text) => {
    const now = clock.now()
    if (text === 'now') return now
    if (/^\d+$/.test(text)) return integer()(text)
    if (Object.hasOwn(DAYS, text)) {
      const day = new Date(now)
      day.setDate(day.getDate() + DAYS[text]!)
      return day.setHours(0, 0, 0, 0)
    }
    const ago = durationMs(text.replace(/^-/, ''))
    if (ago !== undefined) return Math.max(0, now - ago)
    const at = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
    if (at >= 0) return at
    return fail(
      'It must be milliseconds, a time such as 2030-01-31T12:00:00Z, today, yesterday, or a duration ' +
        'before now such as -15m',
    )
  }
}

/** Parses a retention: `forever` (or `infinite`), or a duration such as `30d`. */
export function retention(text: string): RetentionPolicy {
  if (text === 'forever' || text === 'infinite') return 'infinite'
  const ms = durationMs(text)
  if (ms !== undefined) return { ageSeconds: ms / 1000 }
  return fail('It must be `forever`, or a positive integer with s, m, h or d, such as 30d')
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** Says how long records are kept: `forever`, or `30 days`. */
export function retentionPeriod(policy: RetentionPolicy): string {
  if (policy === 'infinite') return 'forever'
  const [noun, seconds] = UNITS.find(([, seconds]) => policy.ageSeconds % seconds === 0)!
  return countText(policy.ageSeconds / seconds, noun)
}

/** Completes `kept ...`: `forever`, or `for 30 days`. */
export function retentionText(policy: RetentionPolicy): string {
  return policy === 'infinite' ? 'forever' : `for ${retentionPeriod(policy)}`
}

/** Formats a count with its noun: `1 stream`, `12,345 records`. */
export function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

const KEY_VARIABLE = 'HEADWATER_ENCRYPTION_KEY'

export interface KeyOptions {
  readonly encryptionKey?: string | undefined
  readonly encryptionKeyFile?: string | undefined
}

/**
 * Returns the key of the options or of the variable.
 *
 * @throws CliError with exit code 2, and with 1 for a file that cannot be read.
 */
export function encryptionKey(
  { encryptionKey: option, encryptionKeyFile: file }: KeyOptions,
  { env }: Pick<CliContext, 'env'>,
): string | undefined {
  const given = file === undefined ? (option ?? env[KEY_VARIABLE]) : contentOfFile(file)
  const key = given?.toString().trim()
  if (!key) return undefined
  const name = file ? '`--encryption-key-file`' : option ? '`--encryption-key`' : KEY_VARIABLE
  validateArgument(() => new EncryptionKey(key).bytes, name)
  return key
}

/** Reads a file that an option names. @throws CliError */
export function contentOfFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new CliError(1, `cannot read ${quotePath(path)}: ${redact((error as Error).message, path)}`)
  }
}

export interface StreamName {
  readonly basin: string
  readonly stream: string
}

/** A basin, or one of its streams. */
export type ResourceName = StreamName | { readonly basin: string; readonly stream?: undefined }

const BASIN_VARIABLE = 'HEADWATER_BASIN'

export function basinName(text: string): string {
  return basinNameProblem(text) === undefined ? text : fail('It must be the name of a basin')
}

export function streamName(context: Pick<CliContext, 'env'>): (text: string) => StreamName {
  return (text) => {
    const name = resourceName(context)(text)
    if (name.stream !== undefined) return name
    const example = context.env[BASIN_VARIABLE] ? `, or \`/STREAM\` for a stream of ${BASIN_VARIABLE}` : ''
    throw new CliError(
      2,
      `${quoteName(text)} is not the name of a stream; expected \`BASIN/STREAM\`${example}`,
    )
  }
}

export function resourceName(context: Pick<CliContext, 'env'>): (text: string) => ResourceName {
  return (text) => {
    const { basin, rest } = splitName(context)(text)
    if (rest === undefined) return { basin }
    const problem = streamNameProblem(rest)
    if (problem !== undefined) throw new CliError(2, `invalid name ${quoteName(text)}: ${problem}`)
    return { basin, stream: rest }
  }
}

/** Returns a parser that splits a name after its basin, which is validated. What follows is not. */
export function splitName({ env }: Pick<CliContext, 'env'>) {
  return (text: string): { readonly basin: string; readonly rest: string | undefined } => {
    const slash = text.indexOf('/')
    const given = slash < 0 ? text : text.slice(0, slash)
    const basin = slash === 0 ? env[BASIN_VARIABLE] || undefined : given
    if (basin === undefined) {
      throw new CliError(2, `${quoteName(text)} has no basin; set ${BASIN_VARIABLE} or write BASIN/STREAM`)
    }
    const problem = basinNameProblem(basin)
    if (problem !== undefined) {
      const source = slash === 0 ? ` from ${BASIN_VARIABLE}` : ''
      throw new CliError(2, `invalid basin ${quoteArg(basin)}${source}: ${problem}`)
    }
    return { basin, rest: slash < 0 ? undefined : text.slice(slash + 1) }
  }
}

/** Returns a parser of `NAME`, `=NAME`, `PREFIX*` or `*`. */
export function nameSet(kind: ResourceKind): (text: string) => ResourceSet {
  return (text) => {
    if (text === '') fail('It must be NAME, PREFIX* or *, which matches all')
    const isPrefix = text.endsWith('*') && !text.startsWith('=')
    const set = isPrefix ? { prefix: text.slice(0, -1) } : { exact: text.replace(/^=/, '') }
    const problem = resourceSetProblem(kind, set)
    return problem === undefined ? set : fail(`The ${problem}`)
  }
}

/** Returns the name as the user would type it. */
export function nameText({ basin, stream }: ResourceName): string {
  return printable(stream === undefined ? basin : `${basin}/${stream}`)
}

/** Returns a handle of the stream. Using it creates nothing, unless the basin permits that. */
export function streamOf(hw: Headwater, { basin, stream }: StreamName, encryptionKey?: string): Stream {
  return hw.basin(basin, { autoCreate: false }).stream(stream, { encryptionKey })
}

export function resourceOf(hw: Headwater, name: ResourceName): Basin | Stream {
  return name.stream === undefined ? hw.basin(name.basin) : streamOf(hw, name)
}

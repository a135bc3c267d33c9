import { type ArgsDef, type ParsedArgs, parseArgs } from 'citty'
import { CliError, quoteArg } from './errors.ts'

const OPTION = /^--(no-)?([a-z][a-z0-9-]*)(?:=(.*))?$/s
const SHORT_OPTIONS = /^-([a-z].*)$/s
/** No option begins with a digit, so that this is a value. */
const NEGATIVE = /^-\d/

/** What a command accepts besides what its definitions say. */
interface Extras {
  /** The last positional may be given any number of times. */
  readonly isVariadic?: boolean | undefined
}

/**
 * Parses the arguments of a command. Unlike citty alone, it rejects unknown and repeated options, missing
 * values, values of flags other than true and false, and too few or too many positional arguments.
 *
 * @param command As the user typed it: `token issue`.
 * @throws CliError with exit code 2.
 */
export function parseArguments<const Definitions extends ArgsDef>(
  args: readonly string[],
  definitions: Definitions,
  command: string,
  extras: Extras = {},
): ParsedArgs<Definitions> {
  const long = args.includes('--') ? args.indexOf('--') : args.length
  const expanded = [...longOptions(args.slice(0, long), definitions), ...args.slice(long)]
  checkArguments(expanded, definitions, command, extras)
  return parseArgs<Definitions>(expanded, definitions)
}

/** Writes short options as long ones, and a negative number together with its option. */
function longOptions(args: readonly string[], definitions: ArgsDef): string[] {
  const long: string[] = []
  for (const arg of args) {
    const last = long.at(-1)
    if (last !== undefined && NEGATIVE.test(arg) && requiresNext(last, definitions)) {
      long[long.length - 1] = `${last}=${arg}`
    } else long.push(...expandAliases(arg, definitions))
  }
  return long
}

function requiresNext(arg: string, definitions: ArgsDef): boolean {
  const [, negation, name, value] = OPTION.exec(arg) ?? []
  if (name === undefined || negation || value !== undefined || !Object.hasOwn(definitions, name)) return false
  return !['boolean', 'positional'].includes(definitions[name]!.type ?? '')
}

/** Expands short options as other tools read them: `-fn5` is `--follow --lines=5`. */
function expandAliases(arg: string, definitions: ArgsDef): string[] {
  const letters = SHORT_OPTIONS.exec(arg)?.[1] ?? ''
  const options: string[] = []
  for (let i = 0; i < letters.length; i++) {
    const name = Object.keys(definitions).find((key) => aliasOf(definitions[key]!) === letters[i])
    if (name === undefined) return [arg]
    const value = letters.slice(i + 1)
    if (definitions[name]!.type !== 'boolean' && value !== '') return [...options, `--${name}=${value}`]
    options.push(`--${name}`)
  }
  return options.length === 0 ? [arg] : options
}

/** Returns the letter that stands for an option. */
export function aliasOf(definition: ArgsDef[string]): string | undefined {
  return 'alias' in definition && typeof definition.alias === 'string' ? definition.alias : undefined
}

function checkArguments(
  args: readonly string[],
  definitions: ArgsDef,
  command: string,
  { isVariadic = false }: Extras,
): void {
  const usageError = (problem: string) => new CliError(2, `${problem}; see \`headwater ${command} --help\``)
  const seen = new Set<string>()
  const positionals: string[] = []
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '--') {
      positionals.push(...args.slice(i + 1))
      break
    }
    if (!arg.startsWith('-')) {
      positionals.push(arg)
      continue
    }
    const [, negation, name, value] = OPTION.exec(arg) ?? []
    const option = `--${negation ?? ''}${name}`
    const type = name !== undefined && Object.hasOwn(definitions, name) ? definitions[name]!.type : undefined
    const isFlag = type === 'boolean'
    if (name === undefined || type === undefined || type === 'positional' || (negation && !isFlag)) {
      throw usageError(`unknown option ${quoteArg(name === undefined ? arg : option)}`)
    }
    if (seen.has(name)) throw usageError(`\`--${name}\` is given twice`)
    seen.add(name)
    if (isFlag) {
      const isValid = value === undefined || (!negation && /^(true|false)$/.test(value))
      if (!isValid) {
        throw usageError(`\`${option}\` accepts no value${negation ? '' : ' except `true` and `false`'}`)
      }
    } else if (value === undefined) {
      const next = args[++i]
      if (next === undefined) throw usageError(`\`--${name}\` requires a value`)
      if (next.startsWith('-')) {
        throw usageError(
          `\`--${name}\` requires a value; write one that begins with a hyphen as \`--${name}=-x\``,
        )
      }
    }
  }
  const known = Object.entries(definitions).filter(([, { type }]) => type === 'positional')
  const names = known.map(([name]) => name.toUpperCase())
  const required = known.filter(([, { required }]) => required !== false).length
  if (positionals.length < required) {
    throw usageError(`\`${command}\` requires ${names.slice(positionals.length, required).join(' and ')}`)
  }
  if (positionals.length > known.length && !isVariadic) {
    const accepts = names.length === 0 ? 'only options' : `one ${names.join(' and one ')}`
    const unexpected = quoteArg(positionals[known.length]!)
    throw usageError(`unexpected argument ${unexpected}: \`${command}\` accepts ${accepts}`)
  }
}

/** Returns the environment variable of an option: `HEADWATER_TLS_CERT`, `HEADWATER_NO_AUTH`. */
function variableOf(name: string, definition: ArgsDef[string]): string {
  const isOn = definition.type === 'boolean' && definition.default === true
  return `HEADWATER_${isOn ? 'NO_' : ''}${name.toUpperCase().replaceAll('-', '_')}`
}

/**
 * Adds the options that are not given, but set by environment variables. An empty variable counts as unset.
 *
 * @throws CliError with exit code 2 for the variable of a flag that is neither `true` nor `false`.
 */
export function withEnvironment(
  args: readonly string[],
  definitions: ArgsDef,
  env: Readonly<Record<string, string | undefined>>,
): { readonly args: readonly string[]; readonly variables: readonly string[] } {
  const added: string[] = []
  const variables: string[] = []
  for (const [name, definition] of Object.entries(definitions)) {
    const variable = variableOf(name, definition)
    const value = env[variable]
    const isGiven = args.some((arg) => arg.replace('--no-', '--').split('=')[0] === `--${name}`)
    if (!value || isGiven) continue
    variables.push(variable)
    if (definition.type !== 'boolean') added.push(`--${name}=${value}`)
    else if (value === 'true') added.push(definition.default === true ? `--no-${name}` : `--${name}`)
    else if (value !== 'false')
      throw new CliError(
        2,
        `invalid value ${quoteArg(value)} of ${variable}; it must be \`true\` or \`false\``,
      )
  }
  return { args: [...added, ...args], variables }
}

/**
 * Takes all uses of an option that may be repeated out of the arguments.
 *
 * @param option With its hyphens: `--header`.
 */
export function takeRepeated(
  args: readonly string[],
  option: string,
): { readonly values: readonly string[]; readonly rest: readonly string[] } {
  const values: string[] = []
  const rest: string[] = []
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '--') {
      rest.push(...args.slice(i))
      break
    }
    const next = args[i + 1]
    if (arg.startsWith(`${option}=`)) values.push(arg.slice(option.length + 1))
    else if (arg === option && next !== undefined && !next.startsWith('-')) values.push(args[++i]!)
    // Without a value it stays, for `parseArguments` to reject.
    else rest.push(arg)
  }
  return { values, rest }
}

/**
 * Parses a number from 0 to `max`, by default 2^53 - 1.
 *
 * @param name The argument, for the message: `--count`.
 * @throws CliError with exit code 2.
 */
export function integerArgument(text: string, name: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value <= max) return value
  throw new CliError(2, `invalid ${name} ${quoteArg(text)}; it must be an integer from 0 to ${max}`)
}

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Parses a positive duration, such as `90s` or `30d`, to milliseconds; undefined if it is none. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^([0-9]{1,12})([smhd])$/.exec(text) ?? []
  const ms = count === undefined ? 0 : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  return ms > 0 ? ms : undefined
}

/**
 * Parses a time: milliseconds since the Unix epoch, RFC 3339, or a duration before now such as `15m`.
 *
 * @throws CliError with exit code 2.
 */
export function timeArgument(text: string, name: string, now: number): number {
  if (/^\d+$/.test(text)) return integerArgument(text, name)
  const ago = durationMs(text)
  if (ago !== undefined) return Math.max(0, now - ago)
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
  if (time >= 0) return time
  throw new CliError(
    2,
    `invalid ${name} ${quoteArg(text)}; it must be milliseconds, a time such as 2030-01-31T12:00:00Z, ` +
      'or a duration before now such as 15m',
  )
}

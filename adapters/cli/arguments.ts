import { parseArgs } from 'node:util'
import { CliError, quoteArg } from './errors.ts'
import { suggestion, withHelp } from './suggestion.ts'

interface Described {
  readonly description: string
}

/** An argument by its position. */
interface PositionalDefinition extends Described {
  readonly type: 'positional'
  /** True by default. */
  readonly required?: boolean | undefined
  /** True if it may be given any number of times, as only the last positional can be. */
  readonly isRepeated?: boolean | undefined
}

/** An option without a value. */
interface FlagDefinition extends Described {
  readonly type: 'boolean'
  /** Off by default. One that is on is turned off by `--no-NAME`. */
  readonly default?: boolean | undefined
  readonly alias?: string | undefined
  /** Options that all commands share have their place in `headwater help options`. */
  readonly isShared?: boolean | undefined
}

/** An option with a value. */
interface ValueDefinition extends Described {
  readonly type: 'string'
  readonly default?: string | undefined
  readonly alias?: string | undefined
  /** The name of the value in the help: `TIME`. */
  readonly value: string
  readonly isRepeated?: boolean | undefined
  readonly isShared?: boolean | undefined
}

/** The arguments of a command, by name. */
export type Definitions = Readonly<Record<string, PositionalDefinition | FlagDefinition | ValueDefinition>>

type More<Definition, Given extends keyof Definition> = Omit<Definition, 'type' | 'description' | Given>

/** Defines an argument by its position. */
export function positional<const Others extends More<PositionalDefinition, never> = object>(
  description: string,
  others?: Others,
) {
  return { type: 'positional', description, ...(others as Others) } as const
}

/** Defines an option without a value. */
export function flag<const Others extends More<FlagDefinition, never> = object>(
  description: string,
  others?: Others,
) {
  return { type: 'boolean', description, ...(others as Others) } as const
}

/** Defines an option with a value, whose name in the help is `value`. */
export function withValue<const Others extends More<ValueDefinition, 'value'> = object>(
  value: string,
  description: string,
  others?: Others,
) {
  return { type: 'string', value, description, ...(others as Others) } as const
}

type ValueOf<Definition> = Definition extends { readonly isRepeated: true }
  ? readonly string[]
  : Definition extends { readonly type: 'boolean' }
    ? boolean
    : Definition extends { readonly required: false }
      ? string | undefined
      : Definition extends { readonly type: 'positional' } | { readonly default: string }
        ? string
        : string | undefined

/** The result of parsing the arguments of a command. */
export type Values<Defined> = { readonly [Name in keyof Defined]: ValueOf<Defined[Name]> }

/** No option begins with a digit, so that this is a value. */
const NEGATIVE = /^-\d/

/**
 * Parses the arguments of a command. Rejects unknown options, options that are repeated without being
 * defined so, missing values, values of flags other than true and false, and too few or too many positional
 * arguments.
 *
 * @param command As the user typed it: `token issue`.
 * @throws CliError with exit code 2.
 */
export function parseArguments<const Defined extends Definitions>(
  args: readonly string[],
  definitions: Defined,
  command: string,
): Values<Defined> {
  const usageError = (problem: string) => new CliError(2, withHelp(problem, `headwater ${command} --help`))
  const all = Object.entries(definitions)
  const options = all.filter(([, { type }]) => type !== 'positional')
  const values: Record<string, string | boolean | string[] | undefined> = {}
  for (const [name, definition] of all) {
    if (definition.type === 'boolean') values[name] = definition.default ?? false
    else if (definition.isRepeated) values[name] = []
    else if (definition.type === 'string') values[name] = definition.default
  }
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      options.map(([name, definition]) => {
        const alias = aliasOf(definition)
        const type = definition.type === 'boolean' ? 'boolean' : 'string'
        return [name, { type, ...(alias && { short: alias }) }] as const
      }),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const positionals: string[] = []
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const isNegation = token.name.startsWith('no-') && !Object.hasOwn(definitions, token.name)
    const name = isNegation ? token.name.slice(3) : token.name
    const definition = Object.hasOwn(definitions, name) ? definitions[name]! : undefined
    const isFlag = definition?.type === 'boolean'
    if (definition === undefined || definition.type === 'positional' || (isNegation && !isFlag)) {
      const names = options.map(([name, option]) => (isOn(option) ? `--no-${name}` : `--${name}`))
      throw usageError(`unknown option ${quoteArg(token.rawName)}${suggestion(token.rawName, names)}`)
    }
    const isRepeated = definition.type === 'string' && definition.isRepeated === true
    if (seen.has(name) && !isRepeated) throw usageError(`\`--${name}\` is given twice`)
    seen.add(name)
    if (isFlag) values[name] = flagValue(token.value, isNegation, token.rawName, usageError)
    else {
      const value = optionValue(token, usageError)
      if (isRepeated) (values[name] as string[]).push(value)
      else values[name] = value
    }
  }
  return { ...values, ...positionalValues(positionals, all, command, usageError) } as Values<Defined>
}

type UsageError = (problem: string) => CliError

function flagValue(
  value: string | undefined,
  isNegation: boolean,
  option: string,
  usageError: UsageError,
): boolean {
  if (value === undefined) return !isNegation
  if (!isNegation && /^(true|false)$/.test(value)) return value === 'true'
  throw usageError(`\`${option}\` accepts no value${isNegation ? '' : ' except `true` and `false`'}`)
}

function optionValue(
  token: {
    readonly name: string
    readonly value?: string | undefined
    readonly inlineValue?: boolean | undefined
  },
  usageError: UsageError,
): string {
  const { name, value, inlineValue } = token
  if (value === undefined) throw usageError(`\`--${name}\` requires a value`)
  if (inlineValue || value === '-' || !value.startsWith('-') || NEGATIVE.test(value)) return value
  throw usageError(`\`--${name}\` requires a value; write one that begins with a hyphen as \`--${name}=-x\``)
}

function positionalValues(
  given: readonly string[],
  all: readonly (readonly [string, Definitions[string]])[],
  command: string,
  usageError: UsageError,
): Record<string, string | readonly string[] | undefined> {
  const known = all.flatMap(([name, definition]) =>
    definition.type === 'positional' ? [[name, definition] as const] : [],
  )
  const names = known.map(([name]) => name.toUpperCase())
  const required = known.filter(([, { required }]) => required !== false).length
  if (given.length < required) {
    throw usageError(`\`${command}\` requires ${names.slice(given.length, required).join(' and ')}`)
  }
  const isRepeated = known.at(-1)?.[1].isRepeated === true
  if (given.length > known.length && !isRepeated) {
    const accepts = names.length === 0 ? 'only options' : `one ${names.join(' and one ')}`
    const unexpected = quoteArg(given[known.length]!)
    throw usageError(`unexpected argument ${unexpected}: \`${command}\` accepts ${accepts}`)
  }
  return Object.fromEntries(
    known.map(([name, definition], at) => [name, definition.isRepeated ? given.slice(at) : given[at]]),
  )
}

/** Returns the letter that stands for an option. */
export function aliasOf(definition: Definitions[string]): string | undefined {
  return definition.type === 'positional' ? undefined : definition.alias
}

/** Returns whether an option is a flag that is on by default. */
export function isOn(definition: Definitions[string]): boolean {
  return definition.type === 'boolean' && definition.default === true
}

/**
 * Adds the options that are not given, but set by environment variables: `HEADWATER_TLS_CERT`,
 * `HEADWATER_NO_AUTH`. An empty variable counts as unset.
 *
 * @throws CliError with exit code 2 for the variable of a flag that is neither `true` nor `false`.
 */
export function withEnvironment(
  args: readonly string[],
  definitions: Definitions,
  env: Readonly<Record<string, string | undefined>>,
): { readonly args: readonly string[]; readonly variables: readonly string[] } {
  const added: string[] = []
  const variables: string[] = []
  for (const [name, definition] of Object.entries(definitions)) {
    const option = isOn(definition) ? `no-${name}` : name
    const variable = `HEADWATER_${option.toUpperCase().replaceAll('-', '_')}`
    const value = env[variable]
    const isGiven = args.some((arg) => arg.replace('--no-', '--').split('=')[0] === `--${name}`)
    if (!value || isGiven) continue
    variables.push(variable)
    if (definition.type !== 'boolean') added.push(`--${name}=${value}`)
    else if (value === 'true') added.push(`--${option}`)
    else if (value !== 'false')
      throw new CliError(
        2,
        `invalid value ${quoteArg(value)} of ${variable}; it must be \`true\` or \`false\``,
      )
  }
  return { args: [...added, ...args], variables }
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

/**
 * Returns one of the allowed values.
 *
 * @param name The argument, for the message: `--log`.
 * @throws CliError with exit code 2.
 */
export function choiceArgument<const Choice extends string>(
  text: string,
  name: string,
  allowed: readonly Choice[],
): Choice {
  const choice = allowed.find((one) => one === text)
  if (choice !== undefined) return choice
  const choices = `${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1)}`
  throw new CliError(2, `invalid value ${quoteArg(text)}; \`${name}\` must be ${choices}`)
}

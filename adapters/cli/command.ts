import { Argument, type Command, type CommanderError, Option } from 'commander'
import type { CliContext } from './context.ts'
import { CliError, quoteArg } from './errors.ts'

interface PositionalDefinition {
  readonly type: 'positional'
  readonly description: string
  /** True by default. */
  readonly required?: boolean | undefined
  /** True if it may be given any number of times, as only the last positional can be. */
  readonly isRepeated?: boolean | undefined
  readonly choices?: readonly string[] | undefined
}

interface OptionDefinition {
  readonly description: string
  readonly alias?: string | undefined
  /** Options that all commands share have their place in `headwater help options`. */
  readonly isShared?: boolean | undefined
  /** The option may be set by a variable, such as `HEADWATER_TLS_CERT`. */
  readonly hasVariable?: boolean | undefined
}

interface FlagDefinition extends OptionDefinition {
  readonly type: 'boolean'
  /** Off by default. One that is on is turned off by `--no-NAME`. */
  readonly default?: boolean | undefined
}

interface ValueDefinition extends OptionDefinition {
  readonly type: 'string'
  /** The name of the value in the help: `TIME`. */
  readonly value: string
  readonly default?: string | undefined
  readonly isRepeated?: boolean | undefined
  readonly choices?: readonly string[] | undefined
}

/** The arguments of a command, by name. */
export type Definitions = Readonly<Record<string, PositionalDefinition | FlagDefinition | ValueDefinition>>

type Others<Definition, Given extends keyof Definition = never> = Omit<
  Definition,
  'type' | 'description' | Given
>

/** Defines an argument by its position. */
export function positional<const More extends Others<PositionalDefinition> = object>(
  description: string,
  more?: More,
) {
  return { type: 'positional', description, ...(more as More) } as const
}

/** Defines an option without a value. */
export function flag<const More extends Others<FlagDefinition> = object>(description: string, more?: More) {
  return { type: 'boolean', description, ...(more as More) } as const
}

/** Defines an option with a value, whose name in the help is `value`. */
export function withValue<const More extends Others<ValueDefinition, 'value'> = object>(
  value: string,
  description: string,
  more?: More,
) {
  return { type: 'string', value, description, ...(more as More) } as const
}

type ValueOf<Definition> = Definition extends { readonly isRepeated: true }
  ? readonly string[]
  : Definition extends { readonly type: 'boolean' }
    ? boolean
    : Definition extends { readonly required: false }
      ? string | undefined
      : Definition extends { readonly type: 'positional' } | { readonly default: string }
        ? Choice<Definition>
        : Choice<Definition> | undefined

type Choice<Definition> = Definition extends { readonly choices: readonly (infer One)[] } ? One : string

/** The values of the arguments of a command. */
export type Values<Defined> = { readonly [Name in keyof Defined]: ValueOf<Defined[Name]> }

/** A command, or a group of commands. */
export interface CliCommand {
  readonly description: string
  /** Command lines for the help. */
  readonly examples?: readonly string[] | undefined
  /** Lines at the end of the help. */
  readonly notes?: readonly string[] | undefined
  readonly definitions?: Definitions | undefined
  /** Validates the values, and runs the command. Throws CliError with exit code 2 for invalid ones. */
  readonly run?: ((values: Values<Definitions>, context: CliContext) => Promise<void>) | undefined
  readonly commands?: Readonly<Record<string, CliCommand>> | undefined
}

/** Defines a command: `parse` receives the values of its arguments, and `run` what `parse` returns. */
export function command<const Defined extends Definitions, Parsed>({
  parse,
  run,
  ...definition
}: Pick<CliCommand, 'description' | 'examples' | 'notes'> & {
  readonly definitions: Defined
  /** Validates the values. Throws CliError with exit code 2. */
  readonly parse: (values: Values<Defined>, context: CliContext) => Parsed
  readonly run: (parsed: Parsed, context: CliContext) => Promise<void>
}): CliCommand {
  return {
    ...definition,
    run: async (values, context) => run(parse(values as Values<Defined>, context), context),
  }
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

/** Adds a command, with its arguments, its help and the commands of a group. */
export function addCommand(parent: Command, name: string, definition: CliCommand, context: CliContext): void {
  const { description, definitions = {}, examples = [], notes = [], commands = {}, run } = definition
  const added = parent.command(name).description(description).helpCommand(false)
  const path = `${pathOf(parent)} ${name}`
  added.exitOverride((error) => {
    throw error.exitCode === 0 ? error : usageError(error, path)
  })
  for (const [name, one] of Object.entries(definitions)) {
    if (one.type === 'positional') added.addArgument(argumentOf(name, one))
    else {
      added.addOption(optionOf(name, one))
      if (one.type === 'string' && !one.isRepeated) refuseTwice(added, name, path)
    }
  }
  addHelp(added, { definitions, examples, notes })
  for (const [name, one] of Object.entries(commands)) addCommand(added, name, one, context)
  if (run !== undefined) added.action(() => runWith(added, definitions, run, context))
}

/** The last of two values would win, and the user would not learn that the first one does not count. */
function refuseTwice(command: Command, name: string, path: string): void {
  let isGiven = false
  command.on(`option:${name}`, () => {
    if (isGiven) throw new CliError(2, `\`--${name}\` is given twice; see \`${path} --help\``)
    isGiven = true
  })
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

function argumentOf(name: string, { required, isRepeated, description, choices }: PositionalDefinition) {
  const term = `${name.toUpperCase()}${isRepeated ? '...' : ''}`
  const argument = new Argument(required === false ? `[${term}]` : `<${term}>`, description)
  return choices === undefined ? argument : argument.choices(choices)
}

/** An option as the help and completion show it. */
export function optionOf(name: string, definition: FlagDefinition | ValueDefinition): Option {
  const { alias, description, isShared = false } = definition
  const isOn = definition.type === 'boolean' && definition.default === true
  const value = definition.type === 'string' ? ` <${definition.value}>` : ''
  const flags = `${alias === undefined ? '' : `-${alias}, `}--${isOn ? 'no-' : ''}${name}${value}`
  const option = new Option(flags, description).hideHelp(isShared)
  if (definition.type === 'boolean') return option
  const { isRepeated, choices } = definition
  if (choices !== undefined) option.choices(choices)
  if (isRepeated) option.argParser((text, before: readonly string[] = []) => [...before, text])
  return definition.default === undefined ? option : option.default(definition.default, definition.default)
}

/** Adds the names of the shared options, the examples and the notes at the end of the help. */
export function addHelp(
  command: Command,
  { definitions = {}, examples = [], notes = [] }: Pick<CliCommand, 'definitions' | 'examples' | 'notes'>,
): void {
  const shared = Object.entries(definitions).flatMap(([name, one]) =>
    one.type !== 'positional' && one.isShared ? [`--${name}`] : [],
  )
  const parts = [
    shared.length === 0 ? [] : [`Shared (headwater help options): ${shared.join(' ')}`],
    examples.length === 0 ? [] : ['Examples:', ...examples.map((line) => `  ${line}`)],
    notes,
  ]
  for (const lines of parts) if (lines.length > 0) command.addHelpText('after', `\n${lines.join('\n')}`)
}

async function runWith(
  command: Command,
  definitions: Definitions,
  run: NonNullable<CliCommand['run']>,
  context: CliContext,
): Promise<void> {
  const values: Record<string, unknown> = {}
  const variables: string[] = []
  const given = command.processedArgs.values()
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === 'positional') values[name] = given.next().value
    else {
      const attribute = optionOf(name, definition).attributeName()
      const fromVariable =
        command.getOptionValueSource(attribute) === 'cli' || !definition.hasVariable
          ? undefined
          : variableOf(name, definition, context.env)
      if (fromVariable !== undefined) variables.push(fromVariable.variable)
      values[name] = fromVariable?.value ?? command.getOptionValue(attribute) ?? emptyValue(definition)
    }
  }
  try {
    await run(values as Values<Definitions>, context)
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== 2 || variables.length === 0) throw error
    throw new CliError(2, `${error.message} (set in the environment: ${variables.join(', ')})`)
  }
}

function emptyValue(definition: FlagDefinition | ValueDefinition): false | readonly string[] | undefined {
  if (definition.type === 'boolean') return false
  return definition.isRepeated ? [] : undefined
}

/**
 * Returns the value of the variable of an option: `HEADWATER_TLS_CERT`, `HEADWATER_NO_AUTH`. An empty one
 * counts as unset. `Option.env` is not used: any value of a flag, even `false`, would turn it on.
 */
function variableOf(name: string, definition: FlagDefinition | ValueDefinition, env: CliContext['env']) {
  const isOn = definition.type === 'boolean' && definition.default === true
  const variable = `HEADWATER_${isOn ? 'NO_' : ''}${name.toUpperCase().replaceAll('-', '_')}`
  const text = env[variable]
  if (!text) return undefined
  if (definition.type === 'string') return { variable, value: definition.isRepeated ? [text] : text }
  if (text === 'true' || text === 'false') return { variable, value: (text === 'true') !== isOn }
  throw new CliError(2, `invalid value ${quoteArg(text)} of ${variable}; it must be \`true\` or \`false\``)
}

/** Words of other tools, or of the HTTP API, for a command. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  cat: 'read',
  get: 'read',
  subscribe: 'tail',
  list: 'ls',
  publish: 'append',
  write: 'append',
  rm: 'delete',
  remove: 'delete',
  describe: 'info',
  start: 'serve',
  cp: 'copy',
}

/**
 * Returns what the command line reports for an error of commander. What the user typed is quoted as
 * everywhere else: it may be a token in the wrong place.
 */
export function usageError({ code, message }: CommanderError, path: string): CliError {
  const help = `see \`${path} --help\``
  if (code === 'commander.help') return new CliError(2, `a command is required; ${help}`)
  const text = message.replace(/^error: /, '').replace(/\.?\n?$/, '')
  const [, problem, word = '', hint = ''] =
    /^(unknown (?:option|command)) '(.*)'(?:\n(.*))?$/s.exec(text) ?? []
  if (problem !== undefined) {
    const other = code === 'commander.unknownCommand' && Object.hasOwn(OTHER_WORDS, word)
    const meant = other ? `(Did you mean ${OTHER_WORDS[word]}?)` : hint
    return new CliError(2, `${problem} ${quoteArg(word)}${meant && ` ${meant}`}; ${help}`)
  }
  const [, before, value, after] = /^(.*(?:argument|value)) '(.*)' is (invalid.*)$/s.exec(text) ?? []
  if (before === undefined) return new CliError(2, `${inBackticks(text)}; ${help}`)
  return new CliError(2, `${inBackticks(before)} ${quoteArg(value!)} is ${inBackticks(after!)}`)
}

function inBackticks(text: string): string {
  return text.replaceAll("'", '`')
}

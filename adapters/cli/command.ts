import { type Definitions, parseArguments, type Values } from './arguments.ts'
import type { CliContext } from './context.ts'

/** A command in the list of a group. Its code is loaded when it is used: starting takes longer than most. */
export interface CommandEntry {
  readonly name: string
  readonly description: string
  load(): Promise<CliCommand>
}

/** A command, or a group of commands. */
export interface CliCommand {
  /** Command lines for the help. */
  readonly examples?: readonly string[] | undefined
  /** Lines at the end of the help. */
  readonly notes?: readonly string[] | undefined
  readonly definitions?: Definitions | undefined
  /**
   * Validates the arguments. Throws CliError with exit code 2.
   *
   * @param name As the user typed it: `token issue`.
   */
  readonly parse?: ((args: readonly string[], context: CliContext, name: string) => unknown) | undefined
  readonly run?: ((args: readonly string[], context: CliContext, name: string) => Promise<void>) | undefined
  readonly commands?: readonly CommandEntry[] | undefined
}

/** Defines a command: `parse` receives the values of its arguments, and `run` what `parse` returns. */
export function command<const Defined extends Definitions, Parsed>(
  definition: Pick<CliCommand, 'examples' | 'notes'> & {
    readonly definitions: Defined
    /** Validates the values. Throws CliError with exit code 2. */
    readonly parse: (values: Values<Defined>, context: CliContext) => Parsed
    readonly run: (parsed: Parsed, context: CliContext) => Promise<void>
  },
): CliCommand {
  const { run, definitions, ...help } = definition
  const parse = (args: readonly string[], context: CliContext, name: string) =>
    definition.parse(parseArguments(args, definitions, name), context)
  return {
    ...help,
    definitions,
    parse,
    run: async (args, context, name) => run(parse(args, context, name), context),
  }
}

/** Lists a command that is loaded already. */
export function entryOf(name: string, description: string, command: CliCommand): CommandEntry {
  return { name, description, load: async () => command }
}

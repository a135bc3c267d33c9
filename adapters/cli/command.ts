import type { ArgsDef } from 'citty'
import type { CliContext } from './context.ts'

/** A command in the list of a group. Its code is loaded when it is used: starting takes longer than most. */
export interface CommandEntry {
  readonly name: string
  readonly description: string
  load(): Promise<CliCommand>
}

/** A command, or a group of commands. */
export interface CliCommand {
  readonly name: string
  readonly description: string
  /** Lines below the options in the help. */
  readonly notes?: readonly string[] | undefined
  readonly definitions?: ArgsDef | undefined
  /** Validates the arguments. Throws CliError with exit code 2. */
  readonly parse?: ((args: readonly string[], context: CliContext) => unknown) | undefined
  readonly run?: ((args: readonly string[], context: CliContext) => Promise<void>) | undefined
  readonly commands?: readonly CommandEntry[] | undefined
}

/** Defines a command: `run` receives what `parse` returns. */
export function command<Parsed>(
  definition: Omit<CliCommand, 'parse' | 'run' | 'commands'> & {
    readonly parse: (args: readonly string[], context: CliContext) => Parsed
    readonly run: (parsed: Parsed, context: CliContext) => Promise<void>
  },
): CliCommand {
  const { parse, run } = definition
  return { ...definition, run: (args, context) => run(parse(args, context), context) }
}

/** Lists a command that is loaded already. */
export function entryOf(command: CliCommand): CommandEntry {
  const { name, description } = command
  return { name, description, load: async () => command }
}

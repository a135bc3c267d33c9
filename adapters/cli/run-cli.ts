import packageJson from '../../package.json' with { type: 'json' }
import type { CliContext } from './cli-context.ts'
import { type Command, HEADWATER, usage } from './commands.ts'
import { CliError, cliErrorOf } from './failure.ts'
import { shown } from './printable.ts'

/** Runs the `headwater` command with its arguments (without the program's name) and resolves with the exit code. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  try {
    await dispatch(args, context)
    return 0
  } catch (error) {
    const failure = cliErrorOf(error)
    if (failure === undefined) throw error
    context.printError(`headwater: ${failure.message}`)
    return failure.exitCode
  }
}

async function dispatch(args: readonly string[], context: CliContext): Promise<void> {
  const { command, path, rest } = commandOf(args)
  const options = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (options.includes('--help') || options.includes('-h')) {
    context.print(await usage(command, path, context.storages))
    return
  }
  if (command === HEADWATER && (rest[0] === '--version' || rest[0] === '-v')) {
    context.print(packageJson.version)
    return
  }
  if (command.run !== undefined) return command.run(rest, context)
  const [word] = rest
  const problem = word === undefined ? 'no command given' : `unknown command ${shown(word)}`
  const commands = command.commands!.map(({ name }) => name).join(', ')
  throw new CliError(2, `${problem}. Commands: ${commands}. See ${`${path} ${command.name}`.trim()} --help`)
}

/** The command that the first words name, and what stands behind them. */
function commandOf(args: readonly string[]) {
  let command: Command = HEADWATER
  const path: string[] = []
  let rest = args
  for (;;) {
    const next = command.commands?.find(({ name }) => name === rest[0])
    if (next === undefined) return { command, path: path.join(' '), rest }
    path.push(command.name)
    command = next
    rest = rest.slice(1)
  }
}

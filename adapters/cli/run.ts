import { stripVTControlCharacters } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import type { CliCommand } from './command.ts'
import { HEADWATER, helpText } from './commands.ts'
import type { CliContext } from './context.ts'
import { CliError, cliErrorOf, Interrupted, isBrokenPipe, quoteArg } from './errors.ts'

/** Runs the `headwater` command with its arguments, without the program name. Resolves with the exit code. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  try {
    await dispatch(args, context)
    return 0
  } catch (error) {
    // As with `| head`.
    if (isBrokenPipe(error)) return 0
    if (error instanceof Interrupted) {
      if (error.message !== '') context.printError(`headwater: ${error.message}`)
      return error.exitCode
    }
    const cliError = cliErrorOf(error)
    if (cliError === undefined) throw error
    context.printError(`headwater: ${cliError.message}`)
    return cliError.exitCode
  }
}

async function dispatch(args: readonly string[], context: CliContext): Promise<void> {
  const isHelp = args[0] === 'help'
  const { command, path, rest } = await findCommand(isHelp ? args.slice(1) : args)
  const options = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (options.includes('--help') || options.includes('-h') || (isHelp && rest.length === 0)) {
    printHelp(await helpText(command, path), context)
    return
  }
  if (command === HEADWATER && (rest[0] === '--version' || rest[0] === '-v')) {
    context.print(packageJson.version)
    return
  }
  if (command.run !== undefined && !isHelp) return command.run(rest, context)
  const [word] = rest
  const help = `${path} ${command.name} --help`.trim()
  if (command.commands === undefined) {
    throw new CliError(2, `unexpected argument ${quoteArg(word!)} of \`help\`; see \`${help}\``)
  }
  const problem = word === undefined ? 'a command is required' : `unknown command ${quoteArg(word)}`
  const names = command.commands.map(({ name }) => name).join(', ')
  throw new CliError(2, `${problem}; expected one of ${names}; see \`${help}\``)
}

function printHelp(text: string, context: CliContext): void {
  const hasColour = context.output().isTTY === true && !context.env.NO_COLOR
  context.print(hasColour ? text : stripVTControlCharacters(text))
}

/** Returns the command that the first arguments name, and the remaining arguments. */
async function findCommand(args: readonly string[]) {
  let command: CliCommand = HEADWATER
  const path: string[] = []
  let rest = args
  for (;;) {
    const next = command.commands?.find(({ name }) => name === rest[0])
    if (next === undefined) return { command, path: path.join(' '), rest }
    path.push(command.name)
    command = await next.load()
    rest = rest.slice(1)
  }
}

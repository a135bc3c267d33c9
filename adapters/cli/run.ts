import { stripVTControlCharacters } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { HEADWATER, TOPICS } from './commands.ts'
import type { CliContext } from './context.ts'
import { CliError, cliErrorOf, Interrupted, isBrokenPipe, quoteArg } from './errors.ts'
import { suggestion, withHelp } from './suggestion.ts'

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
  const [topic, ...others] = isHelp ? args.slice(1) : []
  if (topic !== undefined && others.length === 0 && Object.hasOwn(TOPICS, topic)) {
    return printHelp(await TOPICS[topic]!(), context)
  }
  const { entry, command, path, rest } = await findCommand(isHelp ? args.slice(1) : args)
  const options = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (options.includes('--help') || options.includes('-h') || (isHelp && rest.length === 0)) {
    const { helpText } = await import('./help.ts')
    return printHelp(helpText(path.join(' '), entry, command), context)
  }
  if (entry === HEADWATER && (rest[0] === '--version' || rest[0] === '-v')) {
    context.print(packageJson.version)
    return
  }
  if (command.run !== undefined && !isHelp) return command.run(rest, context, path.slice(1).join(' '))
  const [word] = rest
  const help = `${path.join(' ')} --help`
  if (command.commands === undefined) {
    throw new CliError(2, `unexpected argument ${quoteArg(word!)} of \`help\`; see \`${help}\``)
  }
  const problem = word === undefined ? 'a command is required' : `unknown command ${quoteArg(word)}`
  const names = command.commands.map(({ name }) => name)
  const meant = word === undefined ? '' : suggestion(word, names)
  throw new CliError(2, withHelp(`${problem}${meant || `; expected one of ${names.join(', ')}`}`, help))
}

function printHelp(text: string, context: CliContext): void {
  const hasColour = context.output().isTTY === true && !context.env.NO_COLOR
  context.print(hasColour ? text : stripVTControlCharacters(text))
}

/** Returns the command that the first arguments name, and the remaining arguments. */
async function findCommand(args: readonly string[]) {
  let entry = HEADWATER
  let command = await entry.load()
  const path = [entry.name]
  let rest = args
  for (;;) {
    const next = command.commands?.find(({ name }) => name === rest[0])
    if (next === undefined) return { entry, command, path, rest }
    entry = next
    command = await next.load()
    path.push(next.name)
    rest = rest.slice(1)
  }
}

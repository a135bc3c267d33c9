import { type ArgsDef, defineCommand, renderUsage } from 'citty'
import packageJson from '../../package.json' with { type: 'json' }
import { parseServeArguments, SERVE_ARGS } from './arguments.ts'
import { type CliContext, CliError } from './cli-context.ts'
import { serveCommand } from './serve-command.ts'

const serveDefinition = defineCommand<ArgsDef>({
  meta: { name: 'serve', description: 'Serve the wire protocol, HTTP/1.1 and HTTP/2 on one port' },
  args: SERVE_ARGS,
})

const mainDefinition = defineCommand<ArgsDef>({
  meta: { name: 'headwater', version: packageJson.version, description: 'Durable streams' },
  subCommands: { serve: serveDefinition },
})

/** Runs the `headwater` command with its arguments (without the program's name) and resolves with the exit code. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  try {
    return await dispatch(args, context)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    context.printError(`headwater: ${error.message}`)
    return error.exitCode
  }
}

async function dispatch(args: readonly string[], context: CliContext): Promise<number> {
  const [command, ...rest] = args
  const wantsHelp = args.includes('--help') || args.includes('-h')
  if (command === 'serve') {
    if (wantsHelp) context.print(await renderUsage(serveDefinition, mainDefinition))
    else await serveCommand(parseServeArguments(rest), context)
    return 0
  }
  if (wantsHelp) {
    context.print(await renderUsage(mainDefinition))
    return 0
  }
  if (command === '--version' || command === '-v') {
    context.print(packageJson.version)
    return 0
  }
  const problem = command === undefined ? 'no command given' : `unknown command ${command}`
  throw new CliError(2, `${problem}. Commands: serve. See headwater --help`)
}

import { styleText } from 'node:util'
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addCommand, addHelp, type CliCommand, usageError } from './command.ts'
import { APPEND } from './commands/append.ts'
import { BENCH } from './commands/bench.ts'
import { completionCommand } from './commands/completion.ts'
import { CONFIG, CREATE } from './commands/config.ts'
import { COPY } from './commands/copy.ts'
import { DELETE } from './commands/delete.ts'
import { VERIFY } from './commands/directory.ts'
import { EXPORT } from './commands/export.ts'
import { IMPORT } from './commands/import.ts'
import { INIT } from './commands/init.ts'
import { CONTEXTS, LOGIN, LOGOUT } from './commands/login.ts'
import { INFO, LS } from './commands/ls.ts'
import { METRICS } from './commands/metrics.ts'
import { READ, TAIL } from './commands/read.ts'
import { SERVE } from './commands/serve.ts'
import { CHECK_TAIL, FENCE, TRIM } from './commands/stream-commands.ts'
import { TOKEN } from './commands/token.ts'
import type { CliContext } from './context.ts'

const WITHOUT_COMPLETION: Readonly<Record<string, CliCommand>> = {
  serve: SERVE,
  append: APPEND,
  read: READ,
  tail: TAIL,
  ls: LS,
  info: INFO,
  create: CREATE,
  config: CONFIG,
  delete: DELETE,
  fence: FENCE,
  trim: TRIM,
  'check-tail': CHECK_TAIL,
  login: LOGIN,
  logout: LOGOUT,
  contexts: CONTEXTS,
  token: TOKEN,
  metrics: METRICS,
  verify: VERIFY,
  export: EXPORT,
  import: IMPORT,
  copy: COPY,
  init: INIT,
  bench: BENCH,
}

/** All commands, by name. */
export const COMMANDS: Readonly<Record<string, CliCommand>> = {
  ...WITHOUT_COMPLETION,
  completion: completionCommand(WITHOUT_COMPLETION),
}

const HELP_WIDTH = 100

/** Returns the command line, which writes to the context. */
export function headwaterProgram(context: CliContext): Command {
  const hasColour = () => context.output().isTTY === true && !context.env.NO_COLOR
  const program = new Command('headwater')
    .description('Durable streams')
    .version(packageJson.version, '-v, --version', 'Print the version')
    .helpOption('-h, --help', 'Print the help')
    .helpCommand('help [COMMAND]', 'Print the help of a command, or of `options` or `format`')
    .configureHelp({
      styleTitle: (title) => styleText('bold', title),
      subcommandTerm: (command) => command.name(),
    })
    .configureOutput({
      writeOut: (text) => context.print(text.replace(/\n$/, '')),
      writeErr: (text) => context.printError(text.replace(/\n$/, '')),
      // Errors are reported by the caller.
      outputError: () => {},
      getOutHelpWidth: () => HELP_WIDTH,
      getErrHelpWidth: () => HELP_WIDTH,
      getOutHasColors: hasColour,
      getErrHasColors: () => false,
    })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : usageError(error, 'headwater')
    })
  for (const [name, command] of Object.entries(COMMANDS)) addCommand(program, name, command, context)
  addHelp(program, {
    examples: [
      'cat big.log | headwater append app-logs/web/1',
      'headwater tail -f app-logs/web/1',
      'headwater read app-logs/web/1 --storage ./data',
    ],
    notes: [
      '`headwater help COMMAND` explains a command, `headwater help options` how to choose a server or a',
      'storage and how names and times are written.',
    ],
  })
  return program
}

import { styleText } from 'node:util'
import tab from '@bomb.sh/tab/commander'
import { Command, type CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import packageJson from '../../package.json' with { type: 'json' }
import { appendCommand } from './commands/append.ts'
import { applyCommand } from './commands/apply.ts'
import { benchCommand } from './commands/bench.ts'
import { initCommand } from './commands/init.ts'
import { contextsCommand, loginCommand, logoutCommand } from './commands/login.ts'
import { infoCommand, lsCommand } from './commands/ls.ts'
import { metricsCommand } from './commands/metrics.ts'
import { readCommand, tailCommand } from './commands/read.ts'
import { configCommand, createCommand, deleteCommand } from './commands/resources.ts'
import { serveCommand } from './commands/serve.ts'
import { checkTailCommand, fenceCommand, trimCommand } from './commands/stream-commands.ts'
import { tokenCommand } from './commands/token.ts'
import { copyCommand, exportCommand, importCommand } from './commands/transfer.ts'
import { verifyCommand } from './commands/verify.ts'
import { type CliContext, stopSignalOf } from './context.ts'
import { CliError, cliErrorOf, Interrupted, isBrokenPipe, quoteArg } from './errors.ts'
import { helpText, moveSharedOptions } from './options.ts'
import { FORMAT_HELP } from './record-format.ts'

const COMMANDS = [
  serveCommand,
  appendCommand,
  readCommand,
  tailCommand,
  lsCommand,
  infoCommand,
  createCommand,
  configCommand,
  deleteCommand,
  applyCommand,
  fenceCommand,
  trimCommand,
  checkTailCommand,
  loginCommand,
  logoutCommand,
  contextsCommand,
  tokenCommand,
  metricsCommand,
  verifyCommand,
  exportCommand,
  importCommand,
  copyCommand,
  initCommand,
  benchCommand,
] as const satisfies readonly ((context: CliContext) => CommandUnknownOpts)[]

const HELP_WIDTH = 100

/** Runs the `headwater` command with its arguments, without the program name. Resolves with the exit code. */
export async function runCli(
  args: readonly string[],
  environment: Omit<CliContext, 'stopSignal'>,
): Promise<number> {
  const { stopSignal, dispose } = stopSignalOf(environment)
  const context = { ...environment, stopSignal }
  try {
    const [first, ...words] = args
    const topic = first === 'help' && words.length === 1 ? TOPICS.get(words[0]!) : undefined
    // The help of commander itself knows no members of groups.
    const used = first === 'help' && words.length > 1 ? [...words, '--help'] : args
    if (topic !== undefined) context.print(topic)
    else await headwaterProgram(context).parseAsync(used, { from: 'user' })
    return 0
  } catch (error) {
    // The help or the version was printed.
    if ((error as { code?: unknown }).code?.toString().startsWith('commander.')) {
      return (error as CommanderError).exitCode
    }
    // As with `| head`.
    if (isBrokenPipe(error)) return 0
    const ended = error instanceof Interrupted ? error : cliErrorOf(error)
    if (ended === undefined) throw error
    if (ended.message !== '') context.printError(`headwater: ${ended.message}`)
    return ended.exitCode
  } finally {
    dispose()
  }
}

/** Returns the command line, which writes to the context. */
export function headwaterProgram(context: CliContext): CommandUnknownOpts {
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
  for (const commandOf of COMMANDS) program.addCommand(commandOf(context) as CommandUnknownOpts)
  addCompletion(program, context)
  finish(program, 'headwater')
  return program.addHelpText('after', helpText(PROGRAM_HELP))
}

const PROGRAM_HELP = {
  examples: [
    'cat big.log | headwater append app-logs/web/1',
    'headwater tail -f app-logs/web/1',
    'headwater read app-logs/web/1 --storage ./data',
  ],
  notes: [
    '`headwater help COMMAND` explains a command, `headwater help options` how to choose a server or a',
    'storage and how names and times are written.',
  ],
}

/** Applies to a command and its members what all have in common. */
function finish(command: CommandUnknownOpts, path: string): void {
  moveSharedOptions(command)
  command.exitOverride((error) => {
    throw error.exitCode === 0 ? error : usageError(error, path)
  })
  for (const member of command.commands) {
    finish(member.copyInheritedSettings(command).helpCommand(false), `${path} ${member.name()}`)
  }
}

/**
 * Returns what the command line reports for an error of commander. What the user typed is quoted as
 * everywhere else: it may be a token in the wrong place.
 */
function usageError({ code, message }: CommanderError, path: string): CliError {
  const help = `see \`${path} --help\``
  if (code === 'commander.help') return new CliError(2, `a command is required; ${help}`)
  const text = message.replace(/^error: /, '').replace(/\.?\n?$/, '')
  const [, problem, word = '', hint = ''] =
    /^(unknown (?:option|command)) '(.*)'(?:\n(.*))?$/s.exec(text) ?? []
  if (problem !== undefined) {
    return new CliError(2, `${problem} ${quoteArg(word)}${hint && ` ${hint}`}; ${help}`)
  }
  const inBackticks = (part: string) => part.replaceAll("'", '`')
  const [, where, value, rule] = /^(.*(?:argument|value)) '(.*)' is (invalid.*)$/s.exec(text) ?? []
  if (where === undefined) return new CliError(2, `${inBackticks(text)}; ${help}`)
  return new CliError(2, `${inBackticks(where)} ${quoteArg(value!)} is ${inBackticks(rule!)}`)
}

/**
 * Completes a command line by what `headwater complete -- WORDS...` prints: a candidate with its description
 * on each line, then a line that begins with a colon. Unlike the scripts of the library, it evaluates nothing
 * that the user has typed, and completes files where there is no candidate.
 */
const COMPLETION_SCRIPT = `_headwater() {
  local IFS=$'\\n'
  COMPREPLY=($(headwater complete -- "\${COMP_WORDS[@]:1:$COMP_CWORD}" 2> /dev/null | grep -v '^:' | cut -f 1))
}
complete -o default -F _headwater headwater`

const COMPLETION_NOTES = [
  'bash: headwater completion > /etc/bash_completion.d/headwater',
  'zsh:  autoload -U bashcompinit && bashcompinit && source <(headwater completion)',
]

/** Adds `completion`, which prints a script, and the hidden `complete`, which that script calls. */
function addCompletion(program: CommandUnknownOpts, { print }: CliContext): void {
  tab(program as unknown as Parameters<typeof tab>[0], { completionCommandName: 'completion' })
  const completion = program.commands.find((command) => command.name() === 'completion')!
  // The library knows other shells, too, whose scripts are its own.
  Object.assign(completion, { registeredArguments: [] })
  completion
    .description('Print a script that completes commands and options in bash and zsh')
    .addHelpText('after', helpText({ notes: COMPLETION_NOTES }))
    .action(() => print(COMPLETION_SCRIPT))
}

/** The texts of `headwater help TOPIC` that are about no command. */
export const TOPICS: ReadonlyMap<string, string> = new Map([
  [
    'options',
    [
      'Options and terms of all commands',
      '',
      'Server or storage: a command works on the storage of --storage, else on the server of the first of',
      '--url, --context, HEADWATER_URL, HEADWATER_CONTEXT and the current context (`headwater login`), else on',
      'http://127.0.0.1:8787. A storage needs no token; no other process may have the directory open.',
      'Access token: that of the context if the server is chosen by a context, else --token, HEADWATER_TOKEN',
      'or HEADWATER_ROOT_TOKEN. Prefer the variables: other users of the machine can see options in the',
      'process list. The token of a context is sent to its server only, and that server gets no other token.',
      'Encryption key: 32 bytes in base64, from --encryption-key, --encryption-key-file or',
      'HEADWATER_ENCRYPTION_KEY.',
      'Names: a stream is written BASIN/STREAM. The first slash separates, and stream names may contain more.',
      'A name that begins with the slash, such as /web/1, is in the basin that HEADWATER_BASIN names.',
      'Times: milliseconds since 1970, 2030-01-31 (midnight UTC), 2030-01-31T12:00:00Z, now, today or',
      'yesterday (local midnight), or a duration before now, such as -15m. Durations: 90s, 15m, 12h, 30d.',
      'An option that is given twice has its last value, unless it may be repeated.',
      'Output: results are printed on standard output, everything else on standard error, without colour if it',
      'is not a terminal or NO_COLOR is set.',
      'Exit codes: 0 success, also if the reader of a pipe has ended; 1 the command failed; 2 invalid',
      'arguments; 3 `verify` found no data; 130 stopped with Ctrl+C, 143 with SIGTERM, except `serve`, which',
      'then ends with 0.',
    ].join('\n'),
  ],
  [
    'format',
    [
      'Formats',
      '',
      'read and tail print records as `--format FORMAT` says. Nothing is added to it, not even a line break.',
      '',
      ...FORMAT_HELP,
      '',
      '%% is a percent sign, and \\n, \\t, \\r, \\0 and \\\\ are characters. Everything else is a matter of',
      'JSON: headwater read app-events/orders --json | jq -r .body',
    ].join('\n'),
  ],
])

import { type ArgsDef, type CommandDef, defineCommand, renderUsage } from 'citty'
import packageJson from '../../package.json' with { type: 'json' }
import type { CliCommand, CommandEntry } from './command.ts'

/** `help COMMAND` is COMMAND with `--help`: see `runCli`. */
const HELP: CommandEntry = {
  name: 'help',
  description: 'Print the help of a command',
  load: async () => ({ name: HELP.name, description: HELP.description }),
}

export const HEADWATER: CliCommand = {
  name: 'headwater',
  description: 'Durable streams',
  notes: [
    'Commands work on a server (--url or HEADWATER_URL, with HEADWATER_TOKEN) or on a storage',
    '(--storage ./data). Streams are written BASIN/STREAM. `headwater help COMMAND` has details.',
    '',
    'Exit codes: 0 success, also if the reader of a pipe is gone; 1 the command failed; 2 invalid arguments;',
    '3 `verify` found no data; 130 stopped with Ctrl+C, 143 with SIGTERM, except `serve`, which then ends',
    'with 0. Results are printed on standard output, everything else on standard error. Output has no colour',
    'if it is not a terminal or NO_COLOR is set.',
    '',
    'Example: cat big.log | headwater append app-logs/web/1',
    '         headwater tail -f app-logs/web/1',
  ],
  commands: [
    {
      name: 'serve',
      description: 'Serve the HTTP API, HTTP/1.1 and HTTP/2 on one port',
      load: async () => (await import('./commands/serve.ts')).SERVE,
    },
    {
      name: 'append',
      description: 'Append a record, or the lines of a file or pipe',
      load: async () => (await import('./commands/append.ts')).APPEND,
    },
    {
      name: 'read',
      description: 'Print the records of a stream',
      load: async () => (await import('./commands/read.ts')).READ,
    },
    {
      name: 'tail',
      description: 'Print the last records of a stream, and follow it',
      load: async () => (await import('./commands/read.ts')).TAIL,
    },
    {
      name: 'ls',
      description: 'List basins, or the streams of a basin',
      load: async () => (await import('./commands/ls.ts')).LS,
    },
    {
      name: 'create',
      description: 'Create a basin or a stream',
      load: async () => (await import('./commands/create.ts')).CREATE,
    },
    {
      name: 'config',
      description: 'Print or change the configuration of a basin or a stream',
      load: async () => (await import('./commands/config.ts')).CONFIG,
    },
    {
      name: 'delete',
      description: 'Delete streams, or basins with all their streams, without asking',
      load: async () => (await import('./commands/delete.ts')).DELETE,
    },
    {
      name: 'fence',
      description: 'Set the fencing token of a stream',
      load: async () => (await import('./commands/stream-commands.ts')).FENCE,
    },
    {
      name: 'trim',
      description: 'Remove the records of a stream below a sequence number',
      load: async () => (await import('./commands/stream-commands.ts')).TRIM,
    },
    {
      name: 'check-tail',
      description: 'Print the next sequence number of a stream, and the time of its last record',
      load: async () => (await import('./commands/stream-commands.ts')).CHECK_TAIL,
    },
    {
      name: 'token',
      description: 'Issue, list and revoke access tokens',
      load: async () => (await import('./commands/token.ts')).TOKEN,
    },
    {
      name: 'metrics',
      description: 'Print usage metrics of the account, a basin or a stream',
      load: async () => (await import('./commands/metrics.ts')).METRICS,
    },
    {
      name: 'verify',
      description: 'Read all data in a directory and check every checksum',
      load: async () => (await import('./commands/verify.ts')).VERIFY,
    },
    {
      name: 'export',
      description: 'Export basins, streams and records as lines of JSON',
      load: async () => (await import('./commands/export.ts')).EXPORT,
    },
    {
      name: 'import',
      description: 'Import an export; records keep their sequence numbers and timestamps',
      load: async () => (await import('./commands/import.ts')).IMPORT,
    },
    {
      name: 'copy',
      description: 'Copy streams from one storage or server to another',
      load: async () => (await import('./commands/copy.ts')).COPY,
    },
    {
      name: 'bench',
      description: 'Measure how fast a storage or a server appends, reads and follows',
      load: async () => (await import('./commands/bench.ts')).BENCH,
    },
    {
      name: 'completion',
      description: 'Print a script that completes commands and options in a shell',
      load: async () => (await import('./commands/completion.ts')).completionCommand(() => HEADWATER),
    },
    HELP,
  ],
}

/** @param path The names of the enclosing commands, separated by spaces. */
export async function helpText(command: CliCommand, path: string): Promise<string> {
  const parent = path === '' ? undefined : defineCommand({ meta: { name: path } })
  const usage = await renderUsage(definitionOf(command), parent)
  // The columns are padded; the padding of the last one would wrap in a narrow terminal.
  const lines = usage
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd())
  return [...lines, ...(command.notes ? ['', ...command.notes] : [])].join('\n')
}

function definitionOf({ name, description, definitions, commands }: CliCommand): CommandDef<ArgsDef> {
  return defineCommand<ArgsDef>({
    meta: { name, version: packageJson.version, description },
    ...(definitions && { args: withoutFalseDefaults(definitions) }),
    ...(commands && {
      // The list shows no more than names and descriptions.
      subCommands: Object.fromEntries(
        commands.map(({ name, description }) => [name, definitionOf({ name, description })]),
      ),
    }),
  })
}

/** Every flag is off by default, unless the help says otherwise. */
function withoutFalseDefaults(definitions: ArgsDef): ArgsDef {
  const shown = Object.entries(definitions).map(([name, definition]) => {
    const { default: value, ...others } = definition
    return [name, value === false ? others : definition] as const
  })
  return Object.fromEntries(shown) as ArgsDef
}

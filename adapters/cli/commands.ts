import type { CliCommand, CommandEntry } from './command.ts'

/** `help COMMAND` is COMMAND with `--help`: see `runCli`. */
const HELP: CommandEntry = {
  name: 'help',
  description: 'Print the help of a command, or of `options` or `format`',
  load: async () => ({}),
}

/** The command line itself. */
export const HEADWATER: CommandEntry = {
  name: 'headwater',
  description: 'Durable streams',
  load: async () => HEADWATER_COMMANDS,
}

const HEADWATER_COMMANDS: CliCommand = {
  commands: [
    ...from(() => import('./commands/serve.ts'), {
      SERVE: 'Serve the HTTP API, HTTP/1.1 and HTTP/2 on one port',
    }),
    ...from(() => import('./commands/append.ts'), {
      APPEND: 'Append a record, the lines of a file or pipe, or generated records',
    }),
    ...from(() => import('./commands/read.ts'), {
      READ: 'Print the records of a stream',
      TAIL: 'Print the last records of a stream, and follow it',
    }),
    ...from(() => import('./commands/ls.ts'), {
      LS: 'List basins, or the streams of a basin',
      INFO: 'Print the records, size, retention and last write of a stream',
    }),
    ...from(() => import('./commands/config.ts'), {
      CREATE: 'Create a basin or a stream',
      CONFIG: 'Print or change the configuration of a basin or a stream',
    }),
    ...from(() => import('./commands/delete.ts'), {
      DELETE: 'Delete streams, or basins with all their streams, without asking',
    }),
    ...from(() => import('./commands/stream-commands.ts'), {
      FENCE: 'Set the fencing token of a stream',
      TRIM: 'Remove the records of a stream below a sequence number',
      CHECK_TAIL: 'Print the next sequence number of a stream, and the time of its last record',
    }),
    ...from(() => import('./commands/login.ts'), {
      LOGIN: 'Store the URL and access token of a server as a context',
      LOGOUT: 'Remove a stored context',
      CONTEXTS: 'List the contexts, or choose the current one',
    }),
    ...from(() => import('./commands/token.ts'), { TOKEN: 'Issue, list and revoke access tokens' }),
    ...from(() => import('./commands/metrics.ts'), {
      METRICS: 'Print usage metrics of the account, a basin or a stream',
    }),
    ...from(() => import('./commands/directory.ts'), {
      VERIFY: 'Read all data in a directory and check every checksum',
      UPGRADE: 'Rewrite the files of a directory in the storage format of this release',
    }),
    ...from(() => import('./commands/export.ts'), {
      EXPORT: 'Export basins, streams and records as lines of JSON',
    }),
    ...from(() => import('./commands/import.ts'), {
      IMPORT: 'Import an export; records keep their sequence numbers and timestamps',
    }),
    ...from(() => import('./commands/copy.ts'), {
      COPY: 'Copy streams from one storage or server to another',
    }),
    ...from(() => import('./commands/init.ts'), {
      INIT: 'Write an example into an empty folder, to start from',
    }),
    ...from(() => import('./commands/bench.ts'), {
      BENCH: 'Measure how fast a storage or a server appends, reads and follows',
    }),
    {
      name: 'completion',
      description: 'Print a script that completes commands and options in a shell',
      load: async () => (await import('./commands/completion.ts')).completionCommand(HEADWATER),
    },
    HELP,
  ],
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

/** Lists commands of a module, by their exports: CHECK_TAIL is `check-tail`. */
function from<Name extends string>(
  load: () => Promise<NoInfer<Readonly<Record<Name, CliCommand>>>>,
  descriptions: Readonly<Record<Name, string>>,
): CommandEntry[] {
  return (Object.entries(descriptions) as [Name, string][]).map(([exported, description]) => ({
    name: exported.toLowerCase().replace('_', '-'),
    description,
    load: async () => (await load())[exported],
  }))
}

/** Texts of `headwater help` that are about no command. */
export const TOPICS: Readonly<Record<string, () => Promise<string>>> = {
  options: async () => (await import('./topics.ts')).optionsTopic(),
  format: async () => (await import('./topics.ts')).formatTopic(),
}

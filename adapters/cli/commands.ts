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
    entry('serve', 'Serve the HTTP API, HTTP/1.1 and HTTP/2 on one port', () =>
      import('./commands/serve.ts').then(({ SERVE }) => SERVE),
    ),
    entry('append', 'Append a record, the lines of a file or pipe, or generated records', () =>
      import('./commands/append.ts').then(({ APPEND }) => APPEND),
    ),
    entry('read', 'Print the records of a stream', () =>
      import('./commands/read.ts').then(({ READ }) => READ),
    ),
    entry('tail', 'Print the last records of a stream, and follow it', () =>
      import('./commands/read.ts').then(({ TAIL }) => TAIL),
    ),
    entry('ls', 'List basins, or the streams of a basin', () =>
      import('./commands/ls.ts').then(({ LS }) => LS),
    ),
    entry('info', 'Print the records, size, retention and last write of a stream', () =>
      import('./commands/ls.ts').then(({ INFO }) => INFO),
    ),
    entry('create', 'Create a basin or a stream', () =>
      import('./commands/config.ts').then(({ CREATE }) => CREATE),
    ),
    entry('config', 'Print or change the configuration of a basin or a stream', () =>
      import('./commands/config.ts').then(({ CONFIG }) => CONFIG),
    ),
    entry('delete', 'Delete streams, or basins with all their streams, without asking', () =>
      import('./commands/delete.ts').then(({ DELETE }) => DELETE),
    ),
    entry('fence', 'Set the fencing token of a stream', () =>
      import('./commands/stream-commands.ts').then(({ FENCE }) => FENCE),
    ),
    entry('trim', 'Remove the records of a stream below a sequence number', () =>
      import('./commands/stream-commands.ts').then(({ TRIM }) => TRIM),
    ),
    entry('check-tail', 'Print the next sequence number of a stream, and the time of its last record', () =>
      import('./commands/stream-commands.ts').then(({ CHECK_TAIL }) => CHECK_TAIL),
    ),
    entry('login', 'Store the URL and access token of a server as a context', () =>
      import('./commands/login.ts').then(({ LOGIN }) => LOGIN),
    ),
    entry('logout', 'Forget a context', () => import('./commands/login.ts').then(({ LOGOUT }) => LOGOUT)),
    entry('contexts', 'List the contexts, or choose the current one', () =>
      import('./commands/login.ts').then(({ CONTEXTS }) => CONTEXTS),
    ),
    entry('token', 'Issue, list and revoke access tokens', () =>
      import('./commands/token.ts').then(({ TOKEN }) => TOKEN),
    ),
    entry('metrics', 'Print usage metrics of the account, a basin or a stream', () =>
      import('./commands/metrics.ts').then(({ METRICS }) => METRICS),
    ),
    entry('verify', 'Read all data in a directory and check every checksum', () =>
      import('./commands/verify.ts').then(({ VERIFY }) => VERIFY),
    ),
    entry('export', 'Export basins, streams and records as lines of JSON', () =>
      import('./commands/export.ts').then(({ EXPORT }) => EXPORT),
    ),
    entry('import', 'Import an export; records keep their sequence numbers and timestamps', () =>
      import('./commands/import.ts').then(({ IMPORT }) => IMPORT),
    ),
    entry('copy', 'Copy streams from one storage or server to another', () =>
      import('./commands/copy.ts').then(({ COPY }) => COPY),
    ),
    entry('init', 'Write an example into an empty folder, to start from', () =>
      import('./commands/init.ts').then(({ INIT }) => INIT),
    ),
    entry('bench', 'Measure how fast a storage or a server appends, reads and follows', () =>
      import('./commands/bench.ts').then(({ BENCH }) => BENCH),
    ),
    entry('completion', 'Print a script that completes commands and options in a shell', () =>
      import('./commands/completion.ts').then(({ completionCommand }) => completionCommand(HEADWATER)),
    ),
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

function entry(name: string, description: string, load: () => Promise<CliCommand>): CommandEntry {
  return { name, description, load }
}

/** Texts of `headwater help` that are about no command. */
export const TOPICS: Readonly<Record<string, () => Promise<string>>> = {
  options: async () => (await import('./topics.ts')).optionsTopic(),
  format: async () => (await import('./topics.ts')).formatTopic(),
}

import { type ArgsDef, type CommandDef, defineCommand, renderUsage } from 'citty'
import packageJson from '../../package.json' with { type: 'json' }
import type { Command } from './command.ts'
import { APPEND } from './commands/append.ts'
import { BENCH } from './commands/bench.ts'
import { completionCommand } from './commands/completion.ts'
import { CONFIG } from './commands/config.ts'
import { COPY } from './commands/copy.ts'
import { CREATE } from './commands/create.ts'
import { DELETE } from './commands/delete.ts'
import { EXPORT } from './commands/export.ts'
import { IMPORT } from './commands/import.ts'
import { LS } from './commands/ls.ts'
import { METRICS } from './commands/metrics.ts'
import { READ, TAIL } from './commands/read.ts'
import { SERVE } from './commands/serve.ts'
import { CHECK_TAIL, FENCE, TRIM } from './commands/stream-commands.ts'
import { TOKEN } from './commands/token.ts'
import { VERIFY } from './commands/verify.ts'

export const HEADWATER: Command = {
  name: 'headwater',
  description: 'Durable streams',
  notes: [
    'Commands work on a server (--url or HEADWATER_URL, with HEADWATER_TOKEN) or on a storage that no server',
    'has open (--storage ./data). Streams are written BASIN/STREAM. `headwater help COMMAND` has details.',
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
    SERVE,
    APPEND,
    READ,
    TAIL,
    LS,
    CREATE,
    CONFIG,
    DELETE,
    FENCE,
    TRIM,
    CHECK_TAIL,
    TOKEN,
    METRICS,
    VERIFY,
    EXPORT,
    IMPORT,
    COPY,
    BENCH,
    completionCommand(() => HEADWATER),
    // `help COMMAND` is COMMAND with `--help`: see `runCli`.
    { name: 'help', description: 'Print the help of a command' },
  ],
}

/** @param path The names of the enclosing commands, separated by spaces. */
export async function helpText(command: Command, path: string): Promise<string> {
  const parent = path === '' ? undefined : defineCommand({ meta: { name: path } })
  const usage = await renderUsage(definitionOf(command), parent)
  return [usage.trimEnd(), ...(command.notes ? ['', ...command.notes] : [])].join('\n')
}

function definitionOf({ name, description, definitions, commands }: Command): CommandDef<ArgsDef> {
  return defineCommand<ArgsDef>({
    meta: { name, version: packageJson.version, description },
    ...(definitions && { args: withoutFalseDefaults(definitions) }),
    ...(commands && {
      subCommands: Object.fromEntries(commands.map((sub) => [sub.name, definitionOf(sub)])),
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

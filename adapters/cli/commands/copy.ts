import { CopySource, copy, type ExportCounts, Service, TransferError } from '../../transfer/index.ts'
import { command, flag, positional, type Values } from '../command.ts'
import { type CliContext, stopSignal } from '../context.ts'
import { CliError, printable } from '../errors.ts'
import { countText, progressBar } from '../progress.ts'
import { checkExists } from '../storage-location.ts'
import {
  type CliTarget,
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  serverWith,
  withTarget,
} from '../target.ts'
import {
  TRANSFER_CONNECTION,
  TRANSFER_DEFINITIONS,
  transferFilter,
  transferSummary,
} from '../transfer-target.ts'

const COPY_DEFINITIONS = {
  from: positional('Storage or URL of a server to copy from'),
  to: positional('Storage or URL of a server to copy to'),
  follow: flag('Keep copying new records until Ctrl+C'),
  basin: TRANSFER_DEFINITIONS.basin,
  stream: TRANSFER_DEFINITIONS.stream,
  ...KEY_DEFINITION,
  resume: TRANSFER_DEFINITIONS.resume,
  quiet: TRANSFER_DEFINITIONS.quiet,
} as const

const COPY_NOTES = [
  'Records keep their sequence numbers and timestamps. FROM and TO are ./data, file:./data,',
  'postgres://HOST/DATABASE or http://HOST:PORT. Tokens are taken from HEADWATER_FROM_TOKEN and',
  'HEADWATER_TO_TOKEN only. With --resume, streams of TO are continued at their tails.',
  '',
  'To move: copy with --follow, wait until everything is copied, stop the writers and press Ctrl+C. The',
  'command copies the remaining records. Then start the writers on TO; nothing may write to TO before.',
]

interface CopyArguments {
  readonly from: CliTarget
  readonly to: CliTarget
  readonly filter: ReturnType<typeof transferFilter>
  readonly encryptionKey: string | undefined
  readonly follow: boolean
  readonly resume: boolean
  readonly quiet: boolean
}

/** @throws CliError with exit code 2. */
function parseCopyArguments(parsed: Values<typeof COPY_DEFINITIONS>, { env }: CliContext): CopyArguments {
  const { from, to, follow, resume, quiet } = parsed
  if (from === to) throw new CliError(2, 'FROM and TO must not be the same')
  return {
    from: targetOf('FROM', from, env),
    to: targetOf('TO', to, env),
    filter: transferFilter(parsed),
    encryptionKey: encryptionKey(parsed, env),
    follow,
    resume,
    quiet,
  }
}

/** Each server gets its own token and no other: those of other commands are for another server. */
function targetOf(side: 'FROM' | 'TO', text: string, env: CliContext['env']): CliTarget {
  if (!/^https?:/i.test(text)) return parseTarget({ storage: text }, env)
  const variable = `HEADWATER_${side}_TOKEN`
  return serverWith(text, side, [[variable, env[variable] || undefined]])
}

/** `headwater copy`. */
async function copyCommand(args: CopyArguments, context: CliContext): Promise<void> {
  const { from, to, quiet } = args
  if (from.kind !== 'service') await checkExists(from)
  const stop = stopSignal(context)
  // A following copy ends on its own after the signal; others stop between two requests.
  const signal = args.follow ? new AbortController().signal : stop.signal
  try {
    const counts = await withTarget(from, context, TRANSFER_CONNECTION, (source, fromServer) =>
      withTarget(to, context, TRANSFER_CONNECTION, (target, toServer) => {
        const options = { encryptionKey: args.encryptionKey, signal }
        const toService = new Service(target, { ...options, describe: toServer?.describe })
        const fromOptions = { ...options, describe: fromServer?.describe }
        const copied = new CopySource(source, fromOptions, toService)
        return run(copied, toService, args, context, args.follow ? stop.signal : undefined)
      }),
    )
    if (!quiet) context.printError(`Copied ${transferSummary(counts)}`)
  } catch (error) {
    if (!(error instanceof TransferError)) throw error
    if (error.kind === 'aborted') throw new CliError(1, 'stopped before the end; continue with `--resume`')
    // A copy has no lines that the user could see.
    throw new CliError(1, printable(error.message.replace(/^line \d+: /, '')))
  } finally {
    stop.dispose()
  }
}

async function run(
  source: CopySource,
  target: Service,
  { filter, resume, quiet }: CopyArguments,
  context: CliContext,
  until: AbortSignal | undefined,
): Promise<ExportCounts> {
  const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Copying')
  let isCaughtUp = false
  try {
    return await copy(source, target, {
      filter,
      resume,
      until,
      clock: context.clock,
      onProgress: (records, stream) =>
        bar.update(records, undefined, `${countText(records, 'record')}  ${stream ?? ''}`),
      onCaughtUp() {
        if (!isCaughtUp && !quiet) context.printError('Everything is copied; following until Ctrl+C')
        isCaughtUp = true
      },
      onWarning: (message) => context.printError(`Warning: ${printable(message)}`),
    })
  } finally {
    bar.stop()
  }
}

export const COPY = command({
  description: 'Copy streams from one storage or server to another',
  examples: [
    'headwater copy ./data https://streams.example.com',
    'headwater copy --follow ./data postgres://localhost/app',
  ],
  notes: COPY_NOTES,
  definitions: COPY_DEFINITIONS,
  parse: parseCopyArguments,
  run: copyCommand,
})

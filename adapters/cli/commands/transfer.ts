import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import type { Headwater } from '../../../src/index.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../../src/model/names.ts'
import { copy } from '../../transfer/copy.ts'
import { exportEntries } from '../../transfer/export-entries.ts'
import type { ExportCounts } from '../../transfer/export-entry.ts'
import { ExportFile } from '../../transfer/export-file.ts'
import { ExportProgress } from '../../transfer/export-progress.ts'
import { importEntries } from '../../transfer/import-entries.ts'
import { entriesOf, gzipped, linesOfEntries } from '../../transfer/lines.ts'
import {
  type NameFilter,
  nameFilterText,
  parseNameFilter,
  type TransferFilter,
} from '../../transfer/name-filter.ts'
import { Service } from '../../transfer/service.ts'
import { TransferError } from '../../transfer/transfer-error.ts'
import { type CliContext, delay, stopSignal } from '../context.ts'
import { CliError, Interrupted, printable } from '../errors.ts'
import { chunksOf, type Input, openInput } from '../input.ts'
import { KEY_OPTIONS, keyFileOption, keyOption, newCommand, recordsCommand } from '../options.ts'
import { progressBar, standardOutput } from '../output.ts'
import { checkExists, parseStorageLocation } from '../storage.ts'
import {
  type CliTarget,
  type Connected,
  connected,
  serverWith,
  type TargetOptions,
  withHeadwater,
} from '../target.ts'
import { countText, encryptionKey, fail, type KeyOptions, nonEmpty } from '../values.ts'

/** Adds the options that `export`, `import` and `copy` have in common. */
function transferOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  return command
    .option(
      '--basin <NAME>',
      'Only this basin: NAME, or PREFIX* for all with this prefix',
      filterOf(basinNameProblem, basinPrefixProblem),
    )
    .option(
      '--stream <NAME>',
      'Only streams with this name, in the same form',
      filterOf(streamNameProblem, streamPrefixProblem),
    )
    .option('--resume', 'Continue an interrupted transfer')
    .option('--quiet', 'No progress bar and no summary')
}

/** The option of `import` and `copy`. */
function renumberOption() {
  return new Option('--renumber', 'Number the records of each stream from 0, which every server takes')
}

function filterOf(
  problemOfName: (name: string) => string | undefined,
  problemOfPrefix: (prefix: string, kind: 'prefix') => string | undefined,
): (text: string) => NameFilter {
  return (text) => {
    const filter = parseNameFilter(text)
    const problem = 'exact' in filter ? problemOfName(filter.exact) : problemOfPrefix(filter.prefix, 'prefix')
    return problem === undefined ? filter : fail(`The ${problem}`)
  }
}

interface TransferOptions extends TargetOptions, KeyOptions {
  readonly basin?: NameFilter | undefined
  readonly stream?: NameFilter | undefined
  readonly resume?: boolean | undefined
  readonly renumber?: boolean | undefined
  readonly quiet?: boolean | undefined
}

const ALL: NameFilter = { prefix: '' }

function filterOfOptions({ basin = ALL, stream = ALL }: TransferOptions): TransferFilter {
  return { basins: basin, streams: stream }
}

/** Runs a transfer to or from its target. A signal stops it between two requests. */
function withService<Result>(
  options: TransferOptions,
  context: CliContext,
  mustExist: boolean,
  use: (service: Service, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const key = encryptionKey(options, context)
  const transfer = async (hw: Headwater, { signal, server }: Connected) => {
    try {
      return await use(new Service(hw, { encryptionKey: key, signal, describe: server?.describe }), signal)
    } catch (error) {
      if (!(error instanceof TransferError) || error.kind !== 'aborted') throw error
      throw Interrupted.of(signal, 'stopped before the end; continue with `--resume`')
    }
  }
  return withHeadwater(options, context, transfer, { retries: RETRIES, mustExist })
}

/** How often a request is repeated. */
const RETRIES = 5

/** Formats counts: `2 basins, 1 stream, 12,345 records`. */
function summary({ basins, streams, records }: ExportCounts): string {
  return [countText(basins, 'basin'), countText(streams, 'stream'), countText(records, 'record')].join(', ')
}

export const exportCommand = (context: CliContext) =>
  transferOptions(
    recordsCommand('export', {
      description: 'Export basins, streams and records as lines of JSON',
      examples: [
        'headwater export --storage ./data --out backup.jsonl.gz',
        'headwater export --storage ./data | headwater import --url https://streams.example.com',
        'headwater export --basin app-logs --stream "web/*" --out web.jsonl --resume',
      ],
      notes: [
        'Each stream is exported up to its tail at the time when its export begins. Encrypted records are',
        'exported as plain text: protect the file like the key. Access tokens, keys and usage metrics are not',
        'exported. With --resume, FILE is truncated to its last complete line and continued, unless it is',
        'compressed.',
      ],
    }),
  )
    .option('--out <FILE>', 'File to write; it must not exist. Default: standard output', nonEmpty)
    .option('--gzip', 'Compress; implied by FILE.gz')
    .action(async (options) => {
      const out = options.out === '-' ? undefined : options.out
      const gzip = options.gzip ?? out?.endsWith('.gz') ?? false
      if (options.resume && out === undefined) throw new CliError(2, '`--resume` requires `--out FILE`')
      if (options.resume && gzip) {
        throw new CliError(2, 'a compressed export cannot be continued; omit `--resume`, or do not compress')
      }
      const counts = await withService(options, context, true, (service) =>
        exportTo(service, { ...options, out, gzip }, context),
      )
      if (!options.quiet) context.printError(`Exported ${summary(counts)}`)
    })

interface ExportOptions extends TransferOptions {
  /** Undefined: standard output. */
  readonly out: string | undefined
  readonly gzip: boolean
}

async function exportTo(
  service: Service,
  options: ExportOptions,
  context: CliContext,
): Promise<ExportCounts> {
  const file = options.out === undefined ? undefined : await openTarget(options.out, options)
  const progress = file?.progress ?? new ExportProgress()
  const bar = progressBar(context, 'Exporting', options.quiet)
  let failure: unknown
  let bytes = 0
  // Ends without an error, so that what came before it is written completely.
  async function* lines(): AsyncGenerator<Uint8Array> {
    const warn = (message: string) => context.printError(`Warning: ${printable(message)}`)
    const request = { filter: filterOfOptions(options), now: context.clock.now(), progress, onWarning: warn }
    try {
      for await (const chunk of linesOfEntries(exportEntries(service, request))) {
        yield chunk
        bytes += chunk.length
        const { counts, records, stream } = progress
        const note = `${countText(counts.records + records, 'record')}  ${stream?.name ?? ''}`
        bar.update(bytes, undefined, note)
      }
    } catch (error) {
      failure = error
    }
  }
  try {
    if (!progress.isComplete) {
      const output = options.gzip ? gzipped(lines()) : lines()
      const write = standardOutput(context.output())
      if (file !== undefined) await file.write(output)
      else for await (const chunk of output) await write(chunk)
    }
  } finally {
    bar.stop()
    await file?.close()
  }
  if (failure !== undefined) throw failure
  return progress.counts
}

async function openTarget(path: string, { resume, ...options }: ExportOptions): Promise<ExportFile> {
  if (!resume) return ExportFile.create(path)
  const file = await ExportFile.resume(path)
  const { basins, streams } = file.progress.header ?? {}
  const filter = filterOfOptions(options)
  const isSame = basins === nameFilterText(filter.basins) && streams === nameFilterText(filter.streams)
  if (basins === undefined || isSame) return file
  await file.close()
  throw new TransferError(`${path} was started with other filters: \`--basin ${basins} --stream ${streams}\``)
}

export const importCommand = (context: CliContext) =>
  transferOptions(
    recordsCommand('import', {
      description: 'Import an export; records keep their sequence numbers and timestamps',
      examples: [
        'headwater import backup.jsonl.gz --storage ./restored',
        'gunzip < backup.jsonl.gz | headwater import --resume',
      ],
      notes: [
        'Stops at a stream that exists and has records. With --resume, such a stream is continued at its tail if',
        'its last record is the one of the export. A truncated file is imported as far as it goes; then the exit',
        'code is 1. Retention starts again with the import. Streams of a server begin at 0: one whose first',
        'records no longer exist is imported into a storage, or with --renumber.',
      ],
    })
      .argument('[FILE]', 'File to read, compressed or not. Default: standard input', nonEmpty)
      .addOption(renumberOption()),
  ).action(async (path, options) => {
    const input = await openInput(path === '-' ? undefined : path, context)
    const counts = await withService(options, context, false, (service, signal) =>
      importFrom(input, service, options, signal, context),
    )
    if (!options.quiet) context.printError(`Imported ${summary(counts)}`)
  })

async function importFrom(
  { stream, size }: Input,
  service: Service,
  { renumber, resume = false, quiet, ...options }: TransferOptions,
  signal: AbortSignal,
  context: CliContext,
): Promise<ExportCounts> {
  const bar = progressBar(context, 'Importing', quiet)
  const warnings: string[] = []
  // The writer of a pipe may be silent for long, and must not prevent the stop.
  const stop = () => void stream.destroy(new TransferError('interrupted', { kind: 'aborted' }))
  signal.addEventListener('abort', stop, { once: true })
  let bytes = 0
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunksOf(stream)) {
      bytes += chunk.length
      yield chunk
    }
  }
  try {
    return await importEntries(entriesOf(counted()), service, {
      filter: filterOfOptions(options),
      resume,
      renumber,
      onProgress: ({ records }, name = '') =>
        bar.update(bytes, size, `${countText(records, 'record')}  ${name}`),
      onWarning: (message) => warnings.push(message),
    })
  } finally {
    signal.removeEventListener('abort', stop)
    stream.destroy()
    bar.stop()
    for (const message of warnings) context.printError(`Warning: ${printable(message)}`)
  }
}

export const copyCommand = (context: CliContext) =>
  transferOptions(
    newCommand('copy', {
      description: 'Copy streams from one storage or server to another',
      exclusive: [KEY_OPTIONS, ['follow', 'renumber']],
      examples: [
        'headwater copy ./data https://streams.example.com',
        'headwater copy --follow ./data postgres://localhost/app',
      ],
      notes: [
        'Records keep their sequence numbers and timestamps. FROM and TO are ./data, file:./data,',
        'postgres://HOST/DATABASE or http://HOST:PORT. Tokens are taken from HEADWATER_FROM_TOKEN and',
        'HEADWATER_TO_TOKEN only. With --resume, streams of TO are continued at their tails. Streams of a server',
        'begin at 0: one whose first records no longer exist is copied to a storage, or with --renumber.',
        '',
        'To move: copy with --follow, wait until everything is copied, stop the writers and press Ctrl+C. The',
        'command copies the remaining records. Then start the writers on TO; nothing may write to TO before.',
      ],
    })
      .argument('<FROM>', 'Storage or URL of a server to copy from')
      .argument('<TO>', 'Storage or URL of a server to copy to')
      .option('--follow', 'Keep copying new records until Ctrl+C')
      .addOption(renumberOption())
      .addOption(keyOption())
      .addOption(keyFileOption()),
  ).action(async (from, to, options) => {
    if (from === to) throw new CliError(2, 'FROM and TO must not be the same')
    const source = sideOf('FROM', from, context)
    const target = sideOf('TO', to, context)
    const key = encryptionKey(options, context)
    if (source.kind !== 'service') await checkExists(source)
    const counts = await copyBetween(source, target, key, options, context)
    if (!options.quiet) context.printError(`Copied ${summary(counts)}`)
  })

/** Each server gets its own token and no other: those of other commands are for another server. */
function sideOf(side: 'FROM' | 'TO', text: string, { env }: CliContext): CliTarget {
  if (!/^https?:/i.test(text)) return parseStorageLocation(text)
  const variable = `HEADWATER_${side}_TOKEN`
  return serverWith(text, side, [[variable, env[variable] || undefined]])
}

/** How long a copy that follows waits between two passes, in milliseconds. */
const FOLLOW_MS = 1_000

async function copyBetween(
  from: CliTarget,
  to: CliTarget,
  encryptionKey: string | undefined,
  options: TransferOptions & { readonly follow?: boolean | undefined },
  context: CliContext,
): Promise<ExportCounts> {
  const { follow, renumber, resume = false, quiet } = options
  const stop = stopSignal(context)
  // A following copy ends on its own after the signal; others stop between two requests.
  const signal = follow ? undefined : stop.signal
  const bar = progressBar(context, 'Copying', quiet)
  let isCaughtUp = false
  const nextPass = async () => {
    await delay(FOLLOW_MS, context.clock, stop.signal)
    return { isLast: stop.signal.aborted }
  }
  try {
    return await connected(from, context, { retries: RETRIES }, (source, fromServer) =>
      connected(to, context, { retries: RETRIES }, (target, toServer) => {
        const shared = { encryptionKey, signal }
        const fromService = new Service(source, { ...shared, describe: fromServer?.describe })
        const toService = new Service(target, { ...shared, describe: toServer?.describe })
        return copy(fromService, toService, {
          filter: filterOfOptions(options),
          resume,
          renumber,
          now: () => context.clock.now(),
          nextPass: follow ? nextPass : undefined,
          onProgress: (records, stream = '') =>
            bar.update(records, undefined, `${countText(records, 'record')}  ${stream}`),
          onCaughtUp() {
            if (!isCaughtUp && !quiet) context.printError('Everything is copied; following until Ctrl+C')
            isCaughtUp = true
          },
          onWarning: (message) => context.printError(`Warning: ${printable(message)}`),
        })
      }),
    )
  } catch (error) {
    if (!(error instanceof TransferError) || error.kind !== 'aborted') throw error
    throw new CliError(1, 'stopped before the end; continue with `--resume`')
  } finally {
    bar.stop()
    stop.dispose()
  }
}

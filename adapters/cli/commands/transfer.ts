import { type FileHandle, open } from 'node:fs/promises'
import type { Command, OptionValues } from '@commander-js/extra-typings'
import type { Headwater } from '../../../src/index.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../../src/model/names.ts'
import {
  assertUnoccupied,
  CopySource,
  copy,
  createExportFile,
  type ExportCounts,
  type ExportFile,
  exportLines,
  gunzipped,
  importLines,
  LineSink,
  linesOf,
  type NameFilter,
  nameFilterText,
  parseNameFilter,
  resumeExportFile,
  Service,
  TransferError,
  type TransferFilter,
} from '../../transfer/index.ts'
import { type CliContext, stopSignal } from '../context.ts'
import { CliError, Interrupted, printable } from '../errors.ts'
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
import { countText, encryptionKey, type KeyOptions, nonEmpty } from '../values.ts'
import { readError } from './append.ts'

/** Adds the options that `export`, `import` and `copy` have in common. */
function transferOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  return command
    .option(
      '--basin <NAME>',
      'Only this basin: NAME, or PREFIX* for all with this prefix',
      filterOf('`--basin`', basinNameProblem, (prefix) => basinPrefixProblem(prefix, 'prefix')),
    )
    .option(
      '--stream <NAME>',
      'Only streams with this name, in the same form',
      filterOf('`--stream`', streamNameProblem, (prefix) => streamPrefixProblem(prefix, 'prefix')),
    )
    .option('--resume', 'Continue an interrupted transfer')
    .option('--quiet', 'No progress bar and no summary')
}

type Problem = (name: string) => string | undefined

function filterOf(option: string, ofName: Problem, ofPrefix: Problem): (text: string) => NameFilter {
  return (text) => {
    const filter = parseNameFilter(text)
    const problem = 'exact' in filter ? ofName(filter.exact) : ofPrefix(filter.prefix)
    if (problem !== undefined) throw new CliError(2, `${option}: ${problem}`)
    return filter
  }
}

interface TransferOptions extends TargetOptions, KeyOptions {
  readonly basin?: NameFilter | undefined
  readonly stream?: NameFilter | undefined
  readonly resume?: boolean | undefined
  readonly quiet?: boolean | undefined
}

const ALL: NameFilter = { prefix: '' }

function filterOfOptions({ basin = ALL, stream = ALL }: TransferOptions): TransferFilter {
  return { basins: basin, streams: stream }
}

/** Requests are repeated, and the signal does not close the client: changes are undone after it. */
const CONNECTION = { retries: 5, signal: undefined } as const

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
  return withHeadwater(options, context, transfer, { ...CONNECTION, mustExist })
}

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
        'exported. With --resume, FILE is truncated to its last complete line and continued.',
      ],
    }),
  )
    .option('--out <FILE>', 'File to write; it must not exist. Default: standard output', nonEmpty)
    .option('--gzip', 'Compress; implied by FILE.gz')
    .action(async (options) => {
      const out = options.out === '-' ? undefined : options.out
      const gzip = options.gzip ?? out?.endsWith('.gz') ?? false
      if (options.resume && out === undefined) throw new CliError(2, '`--resume` requires `--out FILE`')
      const counts = await withService(options, context, true, (service) =>
        exportTo(service, { ...options, out, gzip }, context),
      )
      if (counts !== undefined && !options.quiet) context.printError(`Exported ${summary(counts)}`)
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
): Promise<ExportCounts | undefined> {
  const { sink, point } = await openTarget(options, context)
  let counts: ExportCounts | undefined
  try {
    counts = point?.isComplete ? point.counts : await writeLines(service, options, context, { sink, point })
    const { basin, stream } = options
    const isMissing = (filter: NameFilter | undefined, count: number | undefined) =>
      count === 0 && filter !== undefined && 'exact' in filter
    const noBasin = isMissing(basin, counts?.basins)
    if (noBasin || isMissing(stream, counts?.streams)) {
      await sink.discard()
      const what = noBasin ? `basin ${nameFilterText(basin!)}` : `stream ${nameFilterText(stream!)}`
      throw new CliError(1, `${what} does not exist`)
    }
  } catch (error) {
    // The first error is the one to report.
    await sink.close().catch(() => {})
    throw error
  }
  // The sink buffers: the export has succeeded only when this has.
  await sink.close()
  return counts
}

async function openTarget(
  { out, gzip, resume, ...options }: ExportOptions,
  context: CliContext,
): Promise<Pick<ExportFile, 'sink' | 'point'>> {
  if (out === undefined) {
    return { sink: new LineSink(standardOutput(context.output()), gzip), point: undefined }
  }
  if (!resume) return createExportFile(out, gzip)
  const file = await resumeExportFile(out, gzip)
  const { basins, streams } = file.point?.header ?? {}
  const filter = filterOfOptions(options)
  const isOther = basins !== nameFilterText(filter.basins) || streams !== nameFilterText(filter.streams)
  if (file.point === undefined || !isOther) return file
  await file.sink.close()
  throw new TransferError(`${out} was started with other filters: \`--basin ${basins} --stream ${streams}\``)
}

async function writeLines(
  service: Service,
  options: ExportOptions,
  context: CliContext,
  { sink, point }: Pick<ExportFile, 'sink' | 'point'>,
): Promise<ExportCounts | undefined> {
  const bar = progressBar(context, 'Exporting', options.quiet)
  let bytes = 0
  let records = 0
  let counts: ExportCounts | undefined
  try {
    for await (const lines of exportLines(service, filterOfOptions(options), context.clock.now(), point)) {
      await sink.write(lines.bytes)
      bytes += lines.bytes.length
      records += lines.records
      counts = lines.counts
      bar.update(bytes, undefined, `${countText(records, 'record')}  ${lines.stream ?? ''}`)
    }
    return counts
  } finally {
    bar.stop()
  }
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
        'Fails if a stream exists and has records; if the export is a file, before anything is written. With',
        '--resume, such a stream is continued at its tail if its last record matches the export. A truncated',
        'file is imported as far as it goes; then the exit code is 1. Retention starts again with the import.',
      ],
    }).argument('[FILE]', 'File to read, compressed or not. Default: standard input', nonEmpty),
  ).action(async (path = '-', options) => {
    const file = path === '-' ? undefined : await openFile(path)
    try {
      const counts = await withService(options, context, false, (service, signal) =>
        importFrom(file, service, options, signal, context),
      )
      if (!options.quiet) context.printError(`Imported ${summary(counts)}`)
    } finally {
      await file?.close()
    }
  })

/** @param file Undefined: standard input. */
async function importFrom(
  file: ImportFile | undefined,
  service: Service,
  options: TransferOptions,
  signal: AbortSignal,
  context: CliContext,
): Promise<ExportCounts> {
  const { resume = false, quiet } = options
  const filter = filterOfOptions(options)
  if (file?.size !== undefined && !resume) {
    await assertUnoccupied(() => linesOf(gunzipped(file.read())), service, filter)
  }
  const bar = progressBar(context, 'Importing', quiet)
  const warnings: string[] = []
  let bytes = 0
  async function* input(): AsyncGenerator<Uint8Array> {
    for await (const chunk of file === undefined ? standardInput(context, signal) : file.read()) {
      bytes += chunk.length
      yield chunk
    }
  }
  try {
    return await importLines(linesOf(gunzipped(input())), service, {
      filter,
      resume,
      onProgress: ({ records }, stream = '') =>
        bar.update(bytes, file?.size, `${countText(records, 'record')}  ${stream}`),
      onWarning: (message) => warnings.push(message),
    })
  } finally {
    bar.stop()
    for (const message of warnings) context.printError(`Warning: ${printable(message)}`)
  }
}

/** Reads standard input until the signal: its writer may be silent for long, and must not prevent the stop. */
async function* standardInput(context: CliContext, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const input = context.input()
  const stop = () => input.destroy(new TransferError('interrupted', { kind: 'aborted' }))
  signal.addEventListener('abort', stop, { once: true })
  try {
    yield* input
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Small, because progress is reported per chunk, and a chunk of a compressed file may take long. */
const CHUNK_BYTES = 64 * 1024

interface ImportFile {
  /** The size in bytes; undefined for a pipe, which can be read only once. */
  readonly size: number | undefined
  /** Reads from the beginning. May be repeated if the file has a size. */
  read(): AsyncGenerator<Uint8Array>
  close(): Promise<void>
}

/** Rejects with {@link CliError}, as reading does. */
async function openFile(path: string): Promise<ImportFile> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw readError(path, error)
  }
  const stats = await file.stat()
  // An explicit start makes a second read begin at 0. A pipe has no positions.
  const start = stats.isFile() ? { start: 0 } : {}
  return {
    size: stats.isFile() ? stats.size : undefined,
    close: () => file.close(),
    async *read() {
      try {
        yield* file.createReadStream({ highWaterMark: CHUNK_BYTES, autoClose: false, ...start })
      } catch (error) {
        throw readError(path, error)
      }
    },
  }
}

export const copyCommand = (context: CliContext) =>
  transferOptions(
    newCommand('copy', {
      description: 'Copy streams from one storage or server to another',
      exclusive: [KEY_OPTIONS],
      examples: [
        'headwater copy ./data https://streams.example.com',
        'headwater copy --follow ./data postgres://localhost/app',
      ],
      notes: [
        'Records keep their sequence numbers and timestamps. FROM and TO are ./data, file:./data,',
        'postgres://HOST/DATABASE or http://HOST:PORT. Tokens are taken from HEADWATER_FROM_TOKEN and',
        'HEADWATER_TO_TOKEN only. With --resume, streams of TO are continued at their tails.',
        '',
        'To move: copy with --follow, wait until everything is copied, stop the writers and press Ctrl+C. The',
        'command copies the remaining records. Then start the writers on TO; nothing may write to TO before.',
      ],
    })
      .argument('<FROM>', 'Storage or URL of a server to copy from')
      .argument('<TO>', 'Storage or URL of a server to copy to')
      .option('--follow', 'Keep copying new records until Ctrl+C')
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

async function copyBetween(
  from: CliTarget,
  to: CliTarget,
  encryptionKey: string | undefined,
  options: TransferOptions & { readonly follow?: boolean | undefined },
  context: CliContext,
): Promise<ExportCounts> {
  const { follow, resume = false, quiet } = options
  const stop = stopSignal(context)
  // A following copy ends on its own after the signal; others stop between two requests.
  const signal = follow ? new AbortController().signal : stop.signal
  const bar = progressBar(context, 'Copying', quiet)
  let isCaughtUp = false
  try {
    return await connected(from, context, CONNECTION, (source, fromServer) =>
      connected(to, context, CONNECTION, (target, toServer) => {
        const toService = new Service(target, { encryptionKey, signal, describe: toServer?.describe })
        const ofSource = { encryptionKey, signal, describe: fromServer?.describe }
        return copy(new CopySource(source, ofSource, toService), toService, {
          filter: filterOfOptions(options),
          resume,
          until: follow ? stop.signal : undefined,
          clock: context.clock,
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
    if (!(error instanceof TransferError)) throw error
    if (error.kind === 'aborted') throw new CliError(1, 'stopped before the end; continue with `--resume`')
    // A copy has no lines that the user could see.
    throw new CliError(1, printable(error.message.replace(/^line \d+: /, '')))
  } finally {
    bar.stop()
    stop.dispose()
  }
}

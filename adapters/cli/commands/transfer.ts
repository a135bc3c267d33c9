import { open, rm, writeFile } from 'node:fs/promises'
import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import type { Headwater } from '../../../src/index.ts'
import type { ResourceSet } from '../../../src/model/access.ts'
import { copy } from '../../transfer/copy.ts'
import { exportEntries } from '../../transfer/export-entries.ts'
import type { ExportCounts } from '../../transfer/export-entry.ts'
import { ExportProgress } from '../../transfer/export-progress.ts'
import { importEntries } from '../../transfer/import-entries.ts'
import { entriesOf, gzipped, linesOfEntries } from '../../transfer/lines.ts'
import { EVERYTHING, Service, type TransferFilter } from '../../transfer/service.ts'
import { type CliContext, delay } from '../context.ts'
import { CliError, Interrupted, printable, quotePath, redact } from '../errors.ts'
import { chunksOf, openInput } from '../input.ts'
import { KEY_FILE_OPTION, KEY_OPTION, newCommand, recordsCommand } from '../options.ts'
import { progressBar, standardOutput } from '../output.ts'
import { type Server, serverWith } from '../server.ts'
import { parseStorageLocation } from '../storage.ts'
import { type CliTarget, parseTarget, type TargetOptions, withTarget } from '../target.ts'
import { countText, encryptionKey, type KeyOptions, nameSet, nonEmpty } from '../values.ts'

function transferOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  return command
    .option('--basin <NAME>', 'Only this basin: NAME, or PREFIX* for all with this prefix', nameSet('basins'))
    .option('--stream <NAME>', 'Only streams with this name, in the same form', nameSet('streams'))
    .option('--quiet', 'No progress bar and no summary')
}

const RESUME_OPTION = new Option('--resume', 'Continue an interrupted transfer')
const RENUMBER_OPTION = new Option(
  '--renumber',
  'Number the records of each stream from 0, which every server takes',
)

interface TransferOptions extends TargetOptions, KeyOptions {
  readonly basin?: ResourceSet | undefined
  readonly stream?: ResourceSet | undefined
  readonly resume?: boolean | undefined
  readonly renumber?: boolean | undefined
  readonly quiet?: boolean | undefined
}

function filterOfOptions({ basin, stream }: TransferOptions): TransferFilter {
  return { basins: basin ?? EVERYTHING.basins, streams: stream ?? EVERYTHING.streams }
}

const CONTINUE = '; continue with `--resume`'

/** How often a request is repeated. */
const RETRIES = 5

interface ServiceUse {
  readonly key: string | undefined
  /** Refuses a storage that does not exist yet: to read from. */
  readonly mustExist: boolean
  /** Whether the transfer ends on its own after a signal; others stop between two requests. */
  readonly follows?: boolean | undefined
}

async function withService<Result>(
  target: CliTarget,
  context: CliContext,
  { key, mustExist, follows = false }: ServiceUse,
  use: (service: Service) => Promise<Result>,
): Promise<Result> {
  const signal = follows ? undefined : context.stopSignal()
  const run = (hw: Headwater, server: Server | undefined) =>
    use(new Service(hw, { encryptionKey: key, signal, describe: server?.describe }))
  try {
    const connection = { retries: RETRIES, ...(follows && { signal: undefined }) }
    return await withTarget(target, context, run, { mustExist, ...connection })
  } catch (error) {
    if (!(error instanceof Interrupted) || error.message !== '') throw error
    throw new Interrupted(error.exitCode, `stopped before the end${mustExist ? '' : CONTINUE}`)
  }
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
        'headwater export --basin app-logs --stream "web/*" --out web.jsonl',
      ],
      notes: [
        'Each stream is exported up to its tail at the time when its export begins. Encrypted records are',
        'exported as plain text: protect the file like the key. Access tokens, keys and usage metrics are not',
        'exported. An export that fails leaves no FILE; `headwater copy --resume` can be continued.',
      ],
    }),
  )
    .option('--out <FILE>', 'File to write; it must not exist. Default: standard output', nonEmpty)
    .option('--gzip', 'Compress; implied by FILE.gz')
    .action(async (options) => {
      const path = options.out === '-' ? undefined : options.out
      const gzip = options.gzip ?? path?.endsWith('.gz') ?? false
      const key = encryptionKey(options, context)
      const progress = new ExportProgress()
      const bar = progressBar(context, 'Exporting', options.quiet)
      const run = async (service: Service) => {
        const onWarning = warningsTo(context)
        const request = { filter: filterOfOptions(options), now: context.clock.now(), progress, onWarning }
        let bytes = 0
        async function* lines(): AsyncGenerator<Uint8Array> {
          for await (const chunk of linesOfEntries(exportEntries(service, request))) {
            yield chunk
            bytes += chunk.length
            const { counts, records, stream } = progress
            const note = `${countText(counts.records + records, 'record')}  ${stream?.name ?? ''}`
            bar.update(bytes, undefined, note)
          }
        }
        const output = gzip ? gzipped(lines()) : lines()
        if (path !== undefined) return writeNewFile(path, output)
        const write = standardOutput(context.output())
        for await (const chunk of output) await write(chunk)
      }
      const target = parseTarget(options, context.env)
      await withService(target, context, { key, mustExist: true }, run).finally(() => bar.stop())
      if (!options.quiet) context.printError(`Exported ${summary(progress.counts)}`)
    })

/** Writes a file that only its owner can read, and removes it if that fails. */
async function writeNewFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const reported = (error: unknown) => {
    const { code, message, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return new CliError(1, `${quotePath(path)} already exists`)
    return syscall === undefined
      ? error
      : new CliError(1, `cannot write ${quotePath(path)}: ${redact(message, path)}`)
  }
  // Encrypted records are decrypted in it.
  const file = await open(path, 'wx', 0o600).catch((error) => {
    throw reported(error)
  })
  try {
    await writeFile(file, content)
    await file.sync()
    await file.close()
  } catch (error) {
    await file.close()
    await rm(path, { force: true })
    throw reported(error)
  }
}

function warningsTo({ printError }: CliContext): (message: string) => void {
  return (message) => printError(`Warning: ${printable(message)}`)
}

export const importCommand = (context: CliContext) =>
  transferOptions(
    recordsCommand('import', {
      description: 'Import an export; records keep their sequence numbers',
      examples: [
        'headwater import backup.jsonl.gz --storage ./restored',
        'gunzip < backup.jsonl.gz | headwater import --resume',
      ],
      notes: [
        'Stops at a stream that exists and has records. With --resume, such a stream is continued at its tail if',
        'its last record is the one of the export. A truncated file is imported as far as it goes; then the exit',
        'code is 1. Timestamps are kept, but one in the future of the target becomes the time of the import',
        'unless the stream is uncapped. Retention starts again with the import. Streams of a server begin at 0:',
        'one whose first records no longer exist is imported into a storage, or with --renumber.',
      ],
    })
      .argument('[FILE]', 'File to read, compressed or not. Default: standard input', nonEmpty)
      .addOption(RESUME_OPTION)
      .addOption(RENUMBER_OPTION),
  ).action(async (path, options) => {
    const { renumber, resume = false, quiet } = options
    const input = await openInput(path === '-' ? undefined : path, context)
    const key = encryptionKey(options, context)
    const bar = progressBar(context, 'Importing', quiet)
    const run = (service: Service) => {
      const signal = context.stopSignal()
      // The writer of a pipe may be silent for long, and must not prevent the stop.
      signal.addEventListener('abort', () => input.stream.destroy(signal.reason), { once: true })
      return importEntries(entriesOf(chunksOf(input)), service, {
        filter: filterOfOptions(options),
        resume,
        renumber,
        onProgress: ({ records }, name = '') =>
          bar.update(input.bytesRead, input.size, `${countText(records, 'record')}  ${name}`),
        onWarning: warningsTo(context),
      })
    }
    try {
      const target = parseTarget(options, context.env)
      const counts = await withService(target, context, { key, mustExist: false }, run)
      if (!quiet) context.printError(`Imported ${summary(counts)}`)
    } finally {
      input.stream.destroy()
      bar.stop()
    }
  })

export const copyCommand = (context: CliContext) =>
  transferOptions(
    newCommand('copy', {
      description: 'Copy streams from one storage or server to another',
      examples: [
        'headwater copy ./data https://streams.example.com',
        'headwater copy --follow ./data postgres://localhost/app',
      ],
      notes: [
        'Records keep their sequence numbers and timestamps, but a timestamp in the future of TO becomes its',
        'time unless the stream is uncapped. FROM and TO are ./data, file:./data, postgres://HOST/DATABASE or',
        'http://HOST:PORT. Tokens are taken from HEADWATER_FROM_TOKEN and HEADWATER_TO_TOKEN only. With --resume,',
        'streams of TO are continued at their tails. Streams of a server begin at 0: one whose first records no',
        'longer exist is copied to a storage, or with --renumber.',
        '',
        'To move: copy with --follow, wait until everything is copied, stop the writers and press Ctrl+C. The',
        'command copies the remaining records. Then start the writers on TO; nothing may write to TO before.',
      ],
    })
      .argument('<FROM>', 'Storage or URL of a server to copy from')
      .argument('<TO>', 'Storage or URL of a server to copy to')
      .addOption(new Option('--follow', 'Keep copying new records until Ctrl+C').conflicts('renumber'))
      .addOption(RESUME_OPTION)
      .addOption(RENUMBER_OPTION)
      .addOption(KEY_OPTION)
      .addOption(KEY_FILE_OPTION),
  ).action(async (from, to, options) => {
    if (from === to) throw new CliError(2, 'FROM and TO must not be the same')
    const source = sideOf('FROM', from, context)
    const target = sideOf('TO', to, context)
    const { follow: follows = false, renumber, resume = false, quiet } = options
    const shared = { key: encryptionKey(options, context), follows }
    const bar = progressBar(context, 'Copying', quiet)
    let isCaughtUp = false
    const nextPass = async () => {
      const stop = context.stopSignal()
      await delay(FOLLOW_MS, context.clock, stop)
      return { isLast: stop.aborted }
    }
    const run = (fromService: Service, toService: Service) =>
      copy(fromService, toService, {
        filter: filterOfOptions(options),
        resume,
        renumber,
        now: () => context.clock.now(),
        nextPass: follows ? nextPass : undefined,
        onProgress: (records, stream = '') =>
          bar.update(records, undefined, `${countText(records, 'record')}  ${stream}`),
        onCaughtUp() {
          if (!isCaughtUp && !quiet) context.printError('Everything is copied; following until Ctrl+C')
          isCaughtUp = true
        },
        onWarning: warningsTo(context),
      })
    try {
      const counts = await withService(source, context, { ...shared, mustExist: true }, (fromService) =>
        withService(target, context, { ...shared, mustExist: false }, (toService) =>
          run(fromService, toService),
        ),
      )
      if (!quiet) context.printError(`Copied ${summary(counts)}`)
    } finally {
      bar.stop()
    }
  })

/** Each server gets its own token and no other: those of other commands are for another server. */
function sideOf(side: 'FROM' | 'TO', text: string, { env }: CliContext): CliTarget {
  if (!/^https?:/i.test(text)) return parseStorageLocation(text)
  const variable = `HEADWATER_${side}_TOKEN`
  return serverWith(text, side, [[variable, env[variable] || undefined]])
}

/** How long a copy that follows waits between two passes, in milliseconds. */
const FOLLOW_MS = 1_000

import {
  countPositions,
  createExportFile,
  type ExportCounts,
  type ExportedLines,
  type ExportFile,
  exportLines,
  LineSink,
  nameFilterText,
  resumeExportFile,
  type Service,
  TransferError,
} from '../../transfer/index.ts'
import { command, flag, type Values, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { standardOutput } from '../output.ts'
import { countText, progressBar } from '../progress.ts'
import {
  parseTransferArguments,
  TRANSFER_DEFINITIONS,
  type TransferArguments,
  transferSummary,
  withService,
} from '../transfer-target.ts'

const EXPORT_DEFINITIONS = {
  ...TRANSFER_DEFINITIONS,
  out: withValue('FILE', 'File to write; it must not exist. Default: standard output'),
  gzip: flag('Compress; implied by FILE.gz'),
} as const

const EXPORT_NOTES = [
  'Each stream is exported up to its tail at the time when its export begins. Encrypted records are',
  'exported as plain text: protect the file like the key. Access tokens, keys and usage metrics are not',
  'exported. With --resume, FILE is truncated to its last complete line and continued.',
]

interface ExportArguments extends TransferArguments {
  /** Undefined: standard output. */
  readonly out: string | undefined
  readonly gzip: boolean
}

/** @throws CliError with exit code 2. */
function parseExportArguments(
  parsed: Values<typeof EXPORT_DEFINITIONS>,
  { env }: CliContext,
): ExportArguments {
  if (parsed.out === '') throw new CliError(2, '`--out` must not be empty')
  const out = parsed.out === '-' ? undefined : parsed.out
  const transfer = parseTransferArguments(parsed, env)
  if (transfer.resume && out === undefined) throw new CliError(2, '`--resume` requires `--out FILE`')
  return { ...transfer, out, gzip: parsed.gzip || (out?.endsWith('.gz') ?? false) }
}

/** `headwater export`: writes the export to standard output or to a file. */
async function exportCommand(args: ExportArguments, context: CliContext): Promise<void> {
  const counts = await withService({ ...args, mustExist: true }, context, (service) =>
    exportTo(service, args, context),
  )
  if (counts !== undefined && !args.quiet) context.printError(`Exported ${transferSummary(counts)}`)
}

async function exportTo(
  service: Service,
  args: ExportArguments,
  context: CliContext,
): Promise<ExportCounts | undefined> {
  const { sink, point } = await openTarget(args, context)
  let counts: ExportCounts | undefined
  try {
    counts = point?.isComplete ? point.counts : await writeLines(service, args, context, { sink, point })
    const missing = missingName(args, counts)
    if (missing !== undefined) {
      await sink.discard()
      throw new CliError(1, `${missing} does not exist`)
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

/** The basin or the stream that is to be exported alone, if there is none of this name. */
function missingName({ filter }: ExportArguments, counts: ExportCounts | undefined): string | undefined {
  const { basins, streams } = filter
  if (counts?.basins === 0 && 'exact' in basins) return `basin ${basins.exact}`
  if (counts?.streams === 0 && 'exact' in streams) return `stream ${streams.exact}`
  return undefined
}

async function writeLines(
  service: Service,
  args: ExportArguments,
  context: CliContext,
  { sink, point }: Pick<ExportFile, 'sink' | 'point'>,
): Promise<ExportCounts | undefined> {
  const bar = progressBar(args.quiet ? { ...context, terminal: undefined } : context, 'Exporting')
  try {
    const hasTotal = context.terminal !== undefined && !args.quiet && point === undefined
    const progress = new ExportProgress(hasTotal ? await countPositions(service, args.filter) : undefined)
    let counts: ExportCounts | undefined
    for await (const lines of exportLines(service, args.filter, context.clock.now(), point)) {
      await sink.write(lines.bytes)
      progress.add(lines)
      bar.update(progress.bytes, progress.estimatedBytes, progress.note)
      counts = lines.counts
    }
    return counts
  } finally {
    bar.stop()
  }
}

async function openTarget(
  { out, gzip, resume, filter }: ExportArguments,
  context: CliContext,
): Promise<Pick<ExportFile, 'sink' | 'point'>> {
  if (out === undefined) {
    return { sink: new LineSink(standardOutput(context.output()), gzip), point: undefined }
  }
  if (!resume) return createExportFile(out, gzip)
  const file = await resumeExportFile(out, gzip)
  const { basins, streams } = file.point?.header ?? {}
  const isOther = basins !== nameFilterText(filter.basins) || streams !== nameFilterText(filter.streams)
  if (file.point !== undefined && isOther) {
    await file.sink.close()
    throw new TransferError(
      `${out} was started with other filters: \`--basin ${basins} --stream ${streams}\``,
    )
  }
  return file
}

/**
 * Estimates the size of an export from the positions of its streams: their bytes are not known in advance.
 */
class ExportProgress {
  bytes = 0
  readonly #positions: number | undefined
  #donePositions = 0
  #records = 0
  #seqNum = 0
  #stream: string | undefined

  constructor(positions: number | undefined) {
    this.#positions = positions
  }

  get estimatedBytes(): number | undefined {
    if (this.#positions === undefined || this.#donePositions === 0) return undefined
    return Math.round((this.bytes / this.#donePositions) * Math.max(this.#positions, this.#donePositions))
  }

  get note(): string {
    return `${countText(this.#records, 'record')}  ${this.#stream ?? ''}`
  }

  add({ bytes, records, stream, seqNum }: ExportedLines): void {
    this.bytes += bytes.length
    this.#records += records
    if (seqNum === undefined) this.#seqNum = 0
    else {
      this.#donePositions += seqNum - this.#seqNum
      this.#seqNum = seqNum
    }
    this.#stream = stream
  }
}

export const EXPORT = command({
  description: 'Export basins, streams and records as lines of JSON',
  examples: [
    'headwater export --storage ./data --out backup.jsonl.gz',
    'headwater export --storage ./data | headwater import --url https://streams.example.com',
    'headwater export --basin app-logs --stream "web/*" --out web.jsonl --resume',
  ],
  notes: EXPORT_NOTES,
  definitions: EXPORT_DEFINITIONS,
  parse: parseExportArguments,
  run: exportCommand,
})

import {
  countPositions,
  createExportFile,
  type ExportCounts,
  type ExportFile,
  exportLines,
  LineSink,
  nameFilterText,
  resumeExportFile,
  type Service,
  TransferError,
} from '../transfer/index.ts'
import type { CliContext } from './cli-context.ts'
import { isBrokenPipe, outputSink } from './output-sink.ts'
import { progressBar } from './progress-bar.ts'
import type { ExportArguments } from './transfer-arguments.ts'
import { counted, transferSummary } from './transfer-summary.ts'
import { withService } from './with-service.ts'

/** `headwater export`: standard output, or a file, is the export and nothing else. */
export async function exportCommand(args: ExportArguments, context: CliContext): Promise<void> {
  const counts = await withService({ ...args, directoryMustExist: true }, context, (service) =>
    exported(service, args, context),
  )
  if (counts !== undefined && !args.quiet) context.printError(`Exported ${transferSummary(counts)}`)
}

/** Undefined when nobody reads standard output any more. */
async function exported(
  service: Service,
  args: ExportArguments,
  context: CliContext,
): Promise<ExportCounts | undefined> {
  const { sink, point } = await openTarget(args, context)
  try {
    let counts: ExportCounts | undefined
    try {
      counts = point?.isComplete ? point.counts : await written(service, args, context, { sink, point })
    } catch (error) {
      // What went wrong first is what is told.
      await sink.close().catch(() => {})
      throw error
    }
    // What waits in the sink has not arrived before.
    await sink.close()
    return counts
  } catch (error) {
    if (!isBrokenPipe(error)) throw error
    return undefined
  }
}

async function written(
  service: Service,
  args: ExportArguments,
  context: CliContext,
  { sink, point }: Pick<ExportFile, 'sink' | 'point'>,
): Promise<ExportCounts | undefined> {
  const bar = progressBar(args.quiet ? { ...context, terminal: undefined } : context, 'Exporting')
  try {
    const hasTotal = context.terminal !== undefined && !args.quiet && point === undefined
    const progress = new Progress(hasTotal ? await countPositions(service, args.filter) : undefined)
    let counts: ExportCounts | undefined
    for await (const lines of exportLines(service, args.filter, context.clock.now(), point)) {
      await sink.write(lines.bytes)
      progress.add(lines)
      bar.update(progress.bytes, progress.bytesInAll, progress.note)
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
  if (out === undefined) return { sink: new LineSink(outputSink(context.output()), gzip), point: undefined }
  if (!resume) return createExportFile(out, gzip)
  const file = await resumeExportFile(out, gzip)
  const { basins, streams } = file.point?.header ?? {}
  const isOther = basins !== nameFilterText(filter.basins) || streams !== nameFilterText(filter.streams)
  if (file.point !== undefined && isOther) {
    await file.sink.close()
    throw new TransferError(`${out} was begun with other filters: --basin ${basins} --stream ${streams}`)
  }
  return file
}

/** How far an export has come, as a share of the positions of all streams: how many bytes they make is not known before. */
class Progress {
  readonly #positions: number | undefined
  #donePositions = 0
  #records = 0
  #seqNum = 0
  #stream: string | undefined
  bytes = 0

  constructor(positions: number | undefined) {
    this.#positions = positions
  }

  get bytesInAll(): number | undefined {
    if (this.#positions === undefined || this.#donePositions === 0) return undefined
    return Math.round((this.bytes / this.#donePositions) * Math.max(this.#positions, this.#donePositions))
  }

  get note(): string {
    return `${counted(this.#records, 'record')}  ${this.#stream ?? ''}`
  }

  add({
    bytes,
    records,
    stream,
    seqNum,
  }: {
    bytes: Uint8Array
    records: number
    stream?: string
    seqNum?: number
  }) {
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

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
import { isBrokenPipe, OutputSink } from './output-sink.ts'
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
  const bar = progressBar(args.quiet ? { ...context, terminal: undefined } : context, 'Exporting')
  let failure: unknown
  try {
    if (point?.isComplete) return point.counts
    const hasTotal = context.terminal !== undefined && !args.quiet && point === undefined
    const progress = new Progress(hasTotal ? await countPositions(service, args.filter) : undefined)
    for await (const lines of exportLines(service, args.filter, context.clock.now(), point)) {
      await sink.write(lines.bytes)
      progress.add(lines)
      bar.update(progress.bytes, progress.bytesInAll, progress.note)
      if (lines.counts !== undefined) return lines.counts
    }
    return undefined
  } catch (error) {
    failure = error
    if (!isBrokenPipe(error)) throw error
    return undefined
  } finally {
    bar.stop()
    await sink.close().catch((error: unknown) => {
      // What went wrong first is what is told.
      if (failure === undefined && !isBrokenPipe(error)) throw error
    })
  }
}

async function openTarget(
  { out, gzip, resume, filter }: ExportArguments,
  context: CliContext,
): Promise<Pick<ExportFile, 'sink' | 'point'>> {
  if (out === undefined)
    return { sink: new LineSink(new OutputSink(context.output()), gzip), point: undefined }
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

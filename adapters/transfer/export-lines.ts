import type { SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { timeText } from '../../src/wire/json.ts'
import { type ExportCounts, type ExportEntry, encodeEntry } from './export-entry.ts'
import { checkUnchanged, startStream, streamRecords } from './export-stream.ts'
import { listRange, matchesName, nameFilterText, type TransferFilter } from './name-filter.ts'
import type { OpenStream, ResumePoint } from './resume-point.ts'
import type { ListedStream, Service } from './service.ts'
import { isGone } from './transfer-error.ts'

/** Complete lines of an export. */
export interface ExportedLines {
  readonly bytes: Uint8Array
  /** The number of lines that are records. */
  readonly records: number
  /** The stream that the lines belong to. */
  readonly basin?: string | undefined
  readonly stream?: string | undefined
  /** The position that the export of the stream has reached. */
  readonly seqNum?: number | undefined
  /** The totals, with the last line. */
  readonly counts?: ExportCounts | undefined
}

/**
 * Yields the lines of an export: every stream that matches the filter, up to its tail when its export begins.
 * With `resume`, yields the lines after that point. Holds at most two batches of records in memory.
 */
export async function* exportLines(
  service: Service,
  filter: TransferFilter,
  now: number,
  resume?: ResumePoint,
): AsyncGenerator<ExportedLines> {
  const counts = { basins: 0, streams: 0, records: 0, ...resume?.counts }

  async function* stream(facts: ListedStream): AsyncGenerator<ExportedLines> {
    const started = await startStream(service, facts)
    if (started === undefined) return
    yield lines([{ kind: 'stream', stream: started.stream }], facts)
    const open = { stream: started.stream, nextSeqNum: started.stream.start, lastTimestamp: 0, records: 0 }
    yield* records(open, started.first)
  }

  async function* records(
    open: OpenStream,
    first?: readonly SequencedRecord[],
  ): AsyncGenerator<ExportedLines> {
    const { stream } = open
    let written = open.records
    for await (const batch of streamRecords(service, open, first)) {
      written += batch.length
      const entries = batch.map((record) => ({ kind: 'record', record }) as const)
      yield { ...lines(entries, stream), seqNum: batch.at(-1)!.seqNum + 1 }
    }
    counts.streams++
    counts.records += written
    const end = lines([{ kind: 'stream-end', name: stream.name, records: written }], stream)
    yield { ...end, seqNum: stream.tail.seqNum }
  }

  async function* streamsOf(basin: string, startAfter?: string): AsyncGenerator<ExportedLines> {
    const range = { ...listRange(filter.streams), startAfter }
    for await (const facts of untilGone(service.streams(basin, range))) {
      if (matchesName(filter.streams, facts.name)) yield* stream(facts)
    }
  }

  if (resume === undefined) {
    // Fails before the first line if the service cannot be reached.
    await service.basins(listRange(filter.basins)).next()
    const [basins, streams] = [nameFilterText(filter.basins), nameFilterText(filter.streams)]
    yield lines([{ kind: 'header', exportedAt: timeText(new Date(now)), basins, streams }])
  }
  if (resume?.openStream !== undefined) {
    await checkUnchanged(service, resume.openStream)
    yield* records(resume.openStream)
  }
  if (resume?.basin !== undefined && !isPast(filter.streams, resume.lastStream)) {
    yield* streamsOf(resume.basin, resume.lastStream)
  }
  if (!isPast(filter.basins, resume?.basin)) {
    for await (const name of service.basins({ ...listRange(filter.basins), startAfter: resume?.basin })) {
      const config = matchesName(filter.basins, name) ? await service.basinConfig(name) : undefined
      // Undefined if it was deleted since it was listed.
      if (config === undefined) continue
      counts.basins++
      yield { ...lines([{ kind: 'basin', name, config }]), basin: name }
      yield* streamsOf(name)
    }
  }
  yield { ...lines([{ kind: 'end', counts }]), counts }
}

/** Whether no name after this one can match the filter. */
function isPast(filter: TransferFilter['streams'], name: string | undefined): boolean {
  return 'exact' in filter && filter.exact === name
}

/** Ends the list if its basin is deleted. */
async function* untilGone(list: AsyncGenerator<ListedStream>): AsyncGenerator<ListedStream> {
  try {
    yield* list
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

function lines(
  entries: readonly ExportEntry[],
  about?: { readonly basin: string; readonly name: string },
): ExportedLines {
  const bytes = utf8(entries.map((entry) => `${encodeEntry(entry)}\n`).join(''))
  const records = entries[0]?.kind === 'record' ? entries.length : 0
  return { bytes, records, ...(about && { basin: about.basin, stream: about.name }) }
}

/** Counts the positions of all streams that match the filter, to estimate the size of an export. */
export async function countPositions(service: Service, filter: TransferFilter): Promise<number> {
  let positions = 0
  for await (const basin of service.basins(listRange(filter.basins))) {
    if (!matchesName(filter.basins, basin)) continue
    try {
      for await (const count of countsOf(service, basin, filter)) positions += count
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return positions
}

async function* countsOf(
  service: Service,
  basin: string,
  { streams }: TransferFilter,
): AsyncGenerator<number> {
  const config = await service.basinConfig(basin)
  if (config === undefined) return
  for await (const stream of service.streams(basin, listRange(streams))) {
    if (!matchesName(streams, stream.name)) continue
    // Reading the tail of a stream that was deleted since it was listed would create it.
    if (config.createStreamOnRead && (await service.findStream(stream)) === undefined) continue
    yield (await service.tail(stream))?.seqNum ?? 0
  }
}

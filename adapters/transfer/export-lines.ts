import type { SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { dateTimeText } from '../../src/wire/date-time.ts'
import { beginStream } from './begin-stream.ts'
import { encodeEntry } from './encode-entry.ts'
import type { ExportCounts, ExportEntry } from './export-entry.ts'
import { listRange, matchesName, nameFilterText, type TransferFilter } from './name-filter.ts'
import type { OpenStream, ResumePoint } from './resume-point.ts'
import type { Service, StreamFacts } from './service.ts'
import { checkSame, streamRecords } from './stream-records.ts'
import { isGone } from './transfer-error.ts'

/** Some whole lines of an export. */
export interface ExportedLines {
  readonly bytes: Uint8Array
  /** How many of them are records. */
  readonly records: number
  /** What they are about. */
  readonly basin?: string
  readonly stream?: string
  /** How far the export of the stream came: the sequence number behind its last record, in the end that of its tail. */
  readonly seqNum?: number
  /** Of the whole export, with its last line. */
  readonly counts?: ExportCounts
}

/**
 * The lines of an export: every stream that passes the filter up to the tail that it has when its turn comes. With a point to go on from, the lines behind
 * it. Holds two batches of records at the most, and reads nothing ahead but the next batch.
 */
export async function* exportLines(
  service: Service,
  filter: TransferFilter,
  now: number,
  resume?: ResumePoint,
): AsyncGenerator<ExportedLines> {
  const counts = { basins: 0, streams: 0, records: 0, ...resume?.counts }

  async function* stream(facts: StreamFacts): AsyncGenerator<ExportedLines> {
    const begun = await beginStream(service, facts)
    if (begun === undefined) return
    yield lines([{ kind: 'stream', stream: begun.stream }], facts)
    const open = { stream: begun.stream, nextSeqNum: begun.stream.start, lastTimestamp: 0, records: 0 }
    yield* records(open, begun.first)
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
    // Where nothing can be listed there is no export, not the beginning of one.
    await service.basins(listRange(filter.basins)).next()
    const [basins, streams] = [nameFilterText(filter.basins), nameFilterText(filter.streams)]
    yield lines([{ kind: 'header', exportedAt: dateTimeText(new Date(now)), basins, streams }])
  }
  if (resume?.openStream !== undefined) {
    await checkSame(service, resume.openStream)
    yield* records(resume.openStream)
  }
  if (resume?.basin !== undefined && !isPast(filter.streams, resume.lastStream)) {
    yield* streamsOf(resume.basin, resume.lastStream)
  }
  if (!isPast(filter.basins, resume?.basin)) {
    for await (const name of service.basins({ ...listRange(filter.basins), startAfter: resume?.basin })) {
      const config = matchesName(filter.basins, name) ? await service.basinConfig(name) : undefined
      // It may have been deleted since it was listed.
      if (config === undefined) continue
      counts.basins++
      yield { ...lines([{ kind: 'basin', name, config }]), basin: name }
      yield* streamsOf(name)
    }
  }
  yield { ...lines([{ kind: 'end', counts }]), counts }
}

/** Whether nothing that passes the filter comes behind the name. */
function isPast(filter: TransferFilter['streams'], name: string | undefined): boolean {
  return 'exact' in filter && filter.exact === name
}

/** A list that ends where its basin is deleted. */
async function* untilGone(list: AsyncGenerator<StreamFacts>): AsyncGenerator<StreamFacts> {
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

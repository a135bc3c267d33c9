import type { SequencedRecord, StreamPosition } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { dateTimeText } from '../../src/wire/date-time.ts'
import { encodeEntry } from './encode-entry.ts'
import type { ExportCounts, ExportEntry, ExportedStream } from './export-entry.ts'
import { listRange, matchesName, nameFilterText, type TransferFilter } from './name-filter.ts'
import type { OpenStream, ResumePoint } from './resume-point.ts'
import { aboutStream, type Service, type StreamFacts } from './service.ts'
import { TransferError } from './transfer-error.ts'

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

/** A stream that grows while it is asked for its tail and its token is asked again this often. */
const SNAPSHOTS_MAX = 5

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
    const begun = await begin(service, facts)
    if (begun === undefined) return
    yield lines([{ kind: 'stream', stream: begun.stream }], facts)
    yield* records({ stream: begun.stream, nextSeqNum: begun.stream.start, records: 0 }, begun.first)
  }

  async function* records(
    { stream, nextSeqNum, records: before }: OpenStream,
    first?: readonly SequencedRecord[],
  ): AsyncGenerator<ExportedLines> {
    let written = before
    for await (const batch of batches(service, stream, nextSeqNum, first)) {
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
    for await (const facts of service.streams(basin, { ...listRange(filter.streams), startAfter })) {
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

/** The stream as it is now, and its first records. Undefined when it was deleted meanwhile. */
async function begin(
  service: Service,
  facts: StreamFacts,
): Promise<{ stream: ExportedStream; first: readonly SequencedRecord[] } | undefined> {
  if (facts.cipher !== null && !service.hasKey) {
    throw new TransferError(`${aboutStream(facts)} is encrypted, and there is no key for it`)
  }
  const config = await service.streamConfig(facts)
  const snapshot = config && (await snapshotOf(service, facts))
  if (config === undefined || snapshot === undefined) return undefined
  const { tail, fencingToken } = snapshot
  const read = tail.seqNum === 0 ? { tail } : await service.read(facts, 0)
  const first = 'records' in read ? read.records.filter(({ seqNum }) => seqNum < tail.seqNum) : []
  const start = first[0]?.seqNum ?? tail.seqNum
  return { stream: { ...facts, config, start, tail, fencingToken }, first }
}

/** A tail and the fencing token that the stream had at that tail. */
async function snapshotOf(
  service: Service,
  facts: StreamFacts,
): Promise<{ tail: StreamPosition; fencingToken: string | undefined } | undefined> {
  let tail = await service.tail(facts)
  // Without records there was no fence either.
  if (tail === undefined || tail.seqNum === 0) return tail && { tail, fencingToken: '' }
  for (let i = 0; i < SNAPSHOTS_MAX; i++) {
    const fencingToken = await service.fencingToken(facts)
    const after = await service.tail(facts)
    if (after === undefined) return undefined
    if (after.seqNum === tail.seqNum) return { tail, fencingToken }
    tail = after
  }
  return { tail, fencingToken: undefined }
}

/** The records below the tail, batch by batch; those that vanish meanwhile are left out. */
async function* batches(
  service: Service,
  stream: ExportedStream,
  from: number,
  first: readonly SequencedRecord[] = [],
): AsyncGenerator<readonly SequencedRecord[]> {
  const { tail } = stream
  let batch = first
  let position = batch.length === 0 ? from : batch.at(-1)!.seqNum + 1
  for (;;) {
    const next = position < tail.seqNum ? service.read(stream, position) : undefined
    // Whoever stops here does not wait for it.
    next?.catch(() => {})
    if (batch.length > 0) yield batch
    if (next === undefined) return
    const read = await next
    if ('tail' in read) {
      if (read.tail.seqNum < tail.seqNum) throw madeAnew(stream)
      return
    }
    batch = read.records.filter(({ seqNum }) => seqNum < tail.seqNum)
    if (batch.length === 0) return
    position = batch.at(-1)!.seqNum + 1
  }
}

async function checkSame(service: Service, { stream }: OpenStream): Promise<void> {
  const tail = await service.tail(stream)
  const isSame = tail && tail.seqNum >= stream.tail.seqNum && tail.timestamp >= stream.tail.timestamp
  if (!isSame) throw madeAnew(stream)
}

function madeAnew(stream: ExportedStream): TransferError {
  return new TransferError(`${aboutStream(stream)} is not what it was when its export began: it was deleted`)
}

function lines(
  entries: readonly ExportEntry[],
  about?: { readonly basin: string; readonly name: string },
): ExportedLines {
  const bytes = utf8(entries.map((entry) => `${encodeEntry(entry)}\n`).join(''))
  const records = entries[0]?.kind === 'record' ? entries.length : 0
  return { bytes, records, ...(about && { basin: about.basin, stream: about.name }) }
}

import type { ExportEntry, ExportedStream } from './export-entry.ts'
import { ExportProgress } from './export-progress.ts'
import { listRange, matchesName, nameFilterText, type TransferFilter } from './name-filter.ts'
import { isGone, type ListedStream, type Service, type StreamPath, streamLabel } from './service.ts'
import { TransferError } from './transfer-error.ts'

export interface ExportOptions {
  readonly filter: TransferFilter
  /** The current time in milliseconds. */
  readonly now: number
  /** Where an interrupted export continues. Follows what is yielded. */
  readonly progress?: ExportProgress | undefined
  /** Resolves to the position at which the export of a stream begins. By default all records are exported. */
  readonly startOf?: ((stream: StreamPath) => Promise<number>) | undefined
  /** Called for what a later import cannot restore. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/**
 * Exports every stream that matches the filter, up to its tail when its export begins. Yields batches of
 * entries, and holds one batch of records in memory.
 *
 * @throws TransferError
 */
export async function* exportEntries(
  service: Service,
  { filter, now, progress = new ExportProgress(), startOf = async () => 0, onWarning }: ExportOptions,
): AsyncGenerator<readonly ExportEntry[]> {
  function add(...entries: readonly ExportEntry[]): readonly ExportEntry[] {
    for (const entry of entries) progress.add(entry)
    return entries
  }

  async function* streamsOf(basin: string, startAfter?: string): AsyncGenerator<readonly ExportEntry[]> {
    const listed = service.streams(basin, { ...listRange(filter.streams), startAfter })
    for await (const facts of untilGone(listed)) {
      if (!matchesName(filter.streams, facts.name)) continue
      const stream = await stateOf(service, facts, startOf)
      if (stream === undefined) continue
      yield add({ kind: 'stream', stream })
      yield* restOf(stream)
    }
  }

  async function* restOf(stream: ExportedStream): AsyncGenerator<readonly ExportEntry[]> {
    const { name, tail } = stream
    while (progress.nextSeqNum < tail.seqNum) {
      const position = progress.nextSeqNum
      const read = await service.read(stream, position)
      const { seqNum: end } = 'tail' in read ? read.tail : read.records[0]!
      // Below the tail there are no records only if they have expired meanwhile, or were trimmed.
      if ('tail' in read && end < tail.seqNum) throw recreated(stream)
      if (end > position) {
        onWarning?.(
          `${streamLabel(stream)}: the records ${position} to ${Math.min(end, tail.seqNum) - 1} no longer ` +
            'exist; an import has to renumber the others',
        )
      }
      const records = 'records' in read ? read.records.filter(({ seqNum }) => seqNum < tail.seqNum) : []
      if (records.length === 0) break
      yield add(...records.map((record) => ({ kind: 'record', record }) as const))
    }
    // A stream that is deleted by now, and was not created again, gave its own records.
    const found = await service.findStream(stream)
    if (found !== undefined && isOther(stream, found)) throw recreated(stream)
    yield add({ kind: 'stream-end', name, records: progress.records })
  }

  if (progress.header === undefined) {
    const { basins, streams } = filter
    // Before the first entry, also if the service cannot be reached.
    const { value: first } = await service.basins(listRange(basins)).next()
    if ('exact' in basins && first !== basins.exact) throw missing('basin', basins.exact)
    yield add({
      kind: 'header',
      exportedAt: new Date(now),
      basins: nameFilterText(basins),
      streams: nameFilterText(streams),
    })
  }
  if (progress.stream !== undefined) {
    await checkUnchanged(service, progress.stream)
    yield* restOf(progress.stream)
  }
  if (progress.basin !== undefined) yield* streamsOf(progress.basin, progress.lastStream)
  const rest = { ...listRange(filter.basins), startAfter: progress.basin }
  for await (const name of service.basins(rest)) {
    const config = matchesName(filter.basins, name) ? await service.basinConfig(name) : undefined
    // Undefined if it was deleted since it was listed.
    if (config === undefined) continue
    yield add({ kind: 'basin', name, config })
    yield* streamsOf(name)
  }
  const { counts } = progress
  if ('exact' in filter.streams && counts.streams === 0) throw missing('stream', filter.streams.exact)
  yield add({ kind: 'end', counts: { ...counts } })
}

/** Resolves to the state of a listed stream; to undefined if it was deleted since. */
async function stateOf(
  service: Service,
  facts: ListedStream,
  startOf: (stream: StreamPath) => Promise<number>,
): Promise<ExportedStream | undefined> {
  try {
    const config = await service.streamConfig(facts)
    let tail = config && (await service.tail(facts))
    if (config === undefined || tail === undefined) return undefined
    // A stream without records was never fenced.
    if (tail.seqNum === 0) return { ...facts, config, start: 0, tail, fencingToken: '' }
    if (facts.cipher !== null && !service.hasKey) {
      throw new TransferError(`${streamLabel(facts)} is encrypted; a key is required`)
    }
    // Before the tail: a later token is set by a record of the export.
    const fencingToken = await service.fencingToken(facts)
    tail = await service.tail(facts)
    if (tail === undefined) return undefined
    const first = await service.read(facts, await startOf(facts), 1)
    const { seqNum } = 'records' in first ? first.records[0]! : first.tail
    return { ...facts, config, start: Math.min(seqNum, tail.seqNum), tail, fencingToken }
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

/** Ends the list if its basin is deleted. */
async function* untilGone(list: AsyncGenerator<ListedStream>): AsyncGenerator<ListedStream> {
  try {
    yield* list
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/**
 * Rejects if an interrupted export cannot be continued, because the stream is another one or does not exist.
 */
async function checkUnchanged(service: Service, stream: ExportedStream): Promise<void> {
  const found = await service.findStream(stream)
  const tail = found && !isOther(stream, found) ? await service.tail(stream) : undefined
  if (tail === undefined || tail.seqNum < stream.tail.seqNum) throw recreated(stream)
}

function isOther({ createdAt }: ExportedStream, found: ListedStream): boolean {
  return createdAt !== undefined && found.createdAt.getTime() !== createdAt.getTime()
}

function recreated(stream: ExportedStream): TransferError {
  return new TransferError(`${streamLabel(stream)} was deleted or created again since its export began`)
}

function missing(what: string, name: string): TransferError {
  return new TransferError(`${what} ${name} does not exist`)
}

import type { ExportEntry, ExportedStream } from './export-entry.ts'
import { ExportProgress } from './export-progress.ts'
import {
  isGone,
  type ListedStream,
  type Service,
  type StreamPath,
  streamLabel,
  TransferError,
  type TransferFilter,
} from './service.ts'

export interface ExportOptions {
  readonly filter: TransferFilter
  /** The current time in milliseconds. */
  readonly now: number
  /** Follows what is yielded. */
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

  async function* streamsOf(basin: string): AsyncGenerator<readonly ExportEntry[]> {
    for await (const facts of untilGone(service.streams(basin, filter.streams))) {
      const stream = await stateOf(service, facts, startOf)
      if (stream === undefined) continue
      yield add({ kind: 'stream', stream })
      yield* recordsOf(stream)
      yield add({ kind: 'stream-end', name: stream.name, records: progress.records })
    }
  }

  async function* recordsOf(stream: ExportedStream): AsyncGenerator<readonly ExportEntry[]> {
    const { tail } = stream
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
    if (found !== undefined && found.createdAt.getTime() !== stream.createdAt?.getTime()) {
      throw recreated(stream)
    }
  }

  const basins = service.basins(filter.basins)
  // Before the first entry, also if the service cannot be reached.
  let next = await basins.next()
  if (next.done && 'exact' in filter.basins) throw missing('basin', filter.basins.exact)
  yield add({ kind: 'header', exportedAt: new Date(now) })
  for (; !next.done; next = await basins.next()) {
    const name = next.value
    const config = await service.basinConfig(name)
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

function recreated(stream: ExportedStream): TransferError {
  return new TransferError(`${streamLabel(stream)} was deleted or created again since its export began`)
}

function missing(what: string, name: string): TransferError {
  return new TransferError(`${what} ${name} does not exist`)
}

import { type AppendBatch, appendBatch } from '../../model/append-input.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import { HeadwaterError, invalid } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import type { StreamRef } from '../../model/names.ts'
import type { SequencedRecord } from '../../model/record.ts'
import type { CatalogChange, Head, LogStart, StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  type DeadlineDocument,
  deadlineKey,
  getDocument,
  putDeadline,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { emptyHead } from '../../storage/heads.ts'
import type { EngineContext } from '../context.ts'
import { forkTrimmed, streamExists, streamNotFound } from '../errors.ts'
import type { StreamLog } from '../log/stream-log.ts'
import { type Catalog, type Commit, deleteStream } from '../streams/catalog.ts'
import { createLog, type StreamCreator } from '../streams/create.ts'
import type { StreamTable, StreamTarget } from '../streams/table.ts'
import type { Deadlines } from './deadlines.ts'
import type { ReadService } from './read-service.ts'

/** How long a creation may take until what it left is removed, in milliseconds. */
const CREATION_MS_MAX = 3_600_000

export interface InitialContent {
  /** The records below `seqNum` of another stream, or all. */
  readonly fork: { readonly target: StreamTarget; readonly seqNum: number | undefined } | undefined
  readonly records: AppendBatch | undefined
  readonly key: EncryptionKey | undefined
}

export interface StreamBuilderContext extends EngineContext {
  readonly catalog: Catalog
  readonly creator: StreamCreator
  readonly table: StreamTable
  readonly reads: ReadService
  readonly deadlines: Deadlines
}

/**
 * Creates streams that begin with records, their own or those of another stream. They are written to a log
 * that no stream refers to yet, so that the stream appears with all of them or not at all. A deadline removes
 * the log if this process stops in between.
 */
export class StreamBuilder {
  readonly #context: StreamBuilderContext

  constructor(context: StreamBuilderContext) {
    this.#context = context
  }

  /**
   * Creates the stream. Resolves to its document: that of a fork depends on the source. Rejects with
   * `invalid` if the fork begins beyond the tail.
   */
  async create(
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    content: InitialContent,
  ): Promise<StreamDocument> {
    const { session, creator } = this.#context
    const { logId, epoch } = document
    const deadline = creationDeadline(document)
    let mayBePublished = false
    try {
      const written = await this.#write(document, content, deadline.begin)
      mayBePublished = true
      // Conflicts if the deadline has removed the log.
      const changes: CatalogChange[] = [deadline.end, { kind: 'set-epoch', logId, epoch }]
      const source = content.fork?.target.ref
      if (source === undefined) await creator.add(commit, written, basin, changes)
      else await this.#publishFork(written, basin, source, changes)
      return written
    } catch (error) {
      // A log that may be published is left to its deadline, which removes it unless it is.
      if (!mayBePublished || isWithoutEffects(error)) {
        await session.commit([{ kind: 'delete-log', logId }]).catch(() => {})
      }
      throw error
    }
  }

  /** Writes the log of a new stream. Resolves to the document of the stream. */
  async #write(
    created: StreamDocument,
    { fork, records, key }: InitialContent,
    deadline: CatalogChange,
  ): Promise<StreamDocument> {
    const { table } = this.#context
    const source = fork && (await table.lease(fork.target, 'read'))
    const document = source ? forkDocument(created, source.log.document) : created
    try {
      const head = fork
        ? await this.#copy(document, fork, key, deadline)
        : await this.#begin(document, deadline)
      if (records !== undefined) await append(table.detached(document, head), records, key)
      return document
    } finally {
      source?.release()
    }
  }

  /** Creates the log and its deadline. Resolves to the head. */
  async #begin(document: StreamDocument, deadline: CatalogChange, start?: LogStart): Promise<Head> {
    await this.#context.session.commit([createLog(document, start), deadline])
    return emptyHead(document.epoch, document.createdAt, start)
  }

  /** Creates the log with the records of another stream. Resolves to its head. */
  async #copy(
    document: StreamDocument,
    { target, seqNum }: NonNullable<InitialContent['fork']>,
    key: EncryptionKey | undefined,
    deadline: CatalogChange,
  ): Promise<Head> {
    const { reads, table } = this.#context
    const { tail, trimPoint } = await reads.describe(target)
    const wanted = seqNum ?? tail.seqNum
    if (wanted > tail.seqNum) {
      throw invalid(`the fork begins at ${wanted}, beyond the tail ${tail.seqNum} of its source`, 'seqNum')
    }
    // A fork begins open: it does not copy the command that closed its source.
    const end = tail.closed && wanted === tail.seqNum ? Math.max(wanted - 1, trimPoint) : wanted
    if (end < trimPoint) throw forkTrimmed(target.ref, trimPoint)
    // Keeps timestamps as they are.
    const asIs = { ...document.config, timestamping: { mode: 'client-prefer', uncapped: true } } as const
    const begin = (seqNum: number) =>
      this.#begin(document, deadline, { tail: { seqNum, timestamp: 0 }, fencingToken: '' })
    let log: StreamLog | undefined
    let next = end
    for await (const records of recordsOf(reads, target, trimPoint, end)) {
      if (log === undefined) {
        next = records[0]!.seqNum
        log = table.detached({ ...document, config: asIs }, await begin(next))
      }
      // Records in the middle of a stream may have expired before earlier ones, and a log has no gaps.
      for (const { seqNum } of records) {
        if (seqNum !== next) throw forkTrimmed(target.ref, seqNum)
        next++
      }
      const inputs = records.map(({ body, headers, timestamp }) => ({ body, headers, timestamp }))
      await append(log, appendBatch(inputs), key)
    }
    // The last records were removed while the first ones were copied.
    if (next < end) throw forkTrimmed(target.ref, end)
    return log?.head ?? begin(end)
  }

  /** Commits a fork, provided that its source is the stream that was copied. */
  async #publishFork(
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    source: StreamRef,
    changes: readonly CatalogChange[],
  ): Promise<void> {
    const { catalog, creator, deadlines } = this.#context
    // Forks of one stream in turn, because each changes its document.
    await catalog.change(`fork\0${streamKey(source.basin, source.stream)}`, async (commit, isRepeated) => {
      const ref = { basin: document.basin, stream: document.name }
      if (isRepeated && (await deadlines.find(ref)) !== undefined) throw streamExists(ref)
      const current = isRepeated ? await catalog.activeBasin(ref.basin) : basin
      const forked = await deadlines.find(source)
      if (forked === undefined || forked.value.logId !== document.forkOf?.logId) throw streamNotFound(source)
      const counted = putStream({ ...forked.value, forks: (forked.value.forks ?? 0) + 1 }, forked.version)
      await creator.add(commit, document, current, [...changes, counted])
    })
  }
}

/** The stored records of a stream in `[from, end)`, in batches that are not empty. */
async function* recordsOf(
  reads: ReadService,
  target: StreamTarget,
  from: number,
  end: number,
): AsyncGenerator<readonly SequencedRecord[], void> {
  if (from >= end) return
  const cursor = await reads.open(target, { seqNum: from, count: end - from }, { allowsEmpty: 'always' })
  try {
    for (;;) {
      const batch = await cursor?.nextStored()
      const records = batch?.records.filter(({ seqNum }) => seqNum < end) ?? []
      if (records.length === 0) return
      yield records
    }
  } finally {
    cursor?.close()
  }
}

/** Makes the document of a new stream that of a fork, which is never plain if its source is encrypted. */
function forkDocument(created: StreamDocument, source: StreamDocument): StreamDocument {
  const { name, logId } = source
  return { ...created, cipher: created.cipher ?? source.cipher, forkOf: { stream: name, logId } }
}

function append(log: StreamLog, batch: AppendBatch, key: EncryptionKey | undefined): Promise<AppendAck> {
  return new Promise((acked, failed) => log.append(batch, key, { acked, failed }))
}

function isWithoutEffects(error: unknown): boolean {
  return StorageConflict.is(error) || (HeadwaterError.is(error) && !error.mayHaveEffects)
}

/**
 * Counts one fork less of the stream that a deleted stream was a copy of. Frees the name of a deleted stream
 * with its last fork, and so on with the stream that it was a copy of.
 */
export async function releaseSource(
  session: Pick<StorageSession, 'get'>,
  { basin, forkOf }: StreamDocument,
): Promise<CatalogChange[]> {
  const changes: CatalogChange[] = []
  for (let link = forkOf; link !== undefined; ) {
    const document = await getDocument(session, 'streams', streamKey(basin, link.stream))
    const source = document?.value
    if (document === undefined || source?.logId !== link.logId) break
    const forks = (source.forks ?? 1) - 1
    if (forks > 0 || source.deletedAt === undefined) {
      changes.push(putStream({ ...source, forks }, document.version))
      break
    }
    changes.push(deleteStream(document))
    link = source.forkOf
  }
  return changes
}

/** What begins and what ends the creation of a log that no stream refers to yet. */
function creationDeadline({ basin, name, logId, createdAt }: StreamDocument): {
  readonly begin: CatalogChange
  readonly end: CatalogChange
} {
  const deadline: DeadlineDocument = { basin, stream: name, logId, kind: 'creation' }
  const at = createdAt + CREATION_MS_MAX
  return {
    begin: putDeadline(at, deadline),
    end: { kind: 'delete', collection: 'deadlines', key: deadlineKey(at, deadline) },
  }
}

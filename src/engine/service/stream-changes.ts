import { extendRetention, type RetentionExtension } from '../../core/retention.ts'
import type { RetentionPolicy, StreamConfig } from '../../model/config.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import {
  getDocument,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { StreamTable } from '../streams/table.ts'
import type { Commit } from './catalog.ts'
import { emptyDeadline } from './deadlines.ts'
import type { UsageRecorder } from './usage.ts'
import type { WorkRequests } from './work-requests.ts'

/** Removes or reconfigures one incarnation of a stream, and tells the stream table. */
export class StreamChanges {
  readonly #session: Pick<StorageSession, 'head' | 'get'>
  readonly #table: StreamTable
  readonly #usage: UsageRecorder
  readonly #work: WorkRequests
  readonly #clock: Clock

  constructor(
    session: Pick<StorageSession, 'head' | 'get'>,
    table: StreamTable,
    usage: UsageRecorder,
    work: WorkRequests,
    clock: Clock,
  ) {
    this.#session = session
    this.#table = table
    this.#usage = usage
    this.#work = work
    this.#clock = clock
  }

  /**
   * Deletes the stream. With `expectSeqNum` only if nothing was appended beyond it. Its open sessions end. If
   * it has forks, its name stays reserved.
   */
  async remove(
    commit: Commit,
    stream: Versioned<StreamDocument>,
    condition: { readonly expectSeqNum?: number | undefined } = {},
  ): Promise<void> {
    const { value: document, version } = stream
    const now = this.#clock.now()
    const changes: readonly CatalogChange[] =
      (document.forks ?? 0) > 0
        ? [putStream({ ...document, deletedAt: now }, version)]
        : [deletionOf(stream), ...(await releaseSource(this.#session, document))]
    await this.#remove(commit, document, [
      ...changes,
      { kind: 'delete-log', logId: document.logId, ...condition },
    ])
  }

  /** Deletes a stream of a basin whose streams are all deleted, forks included. */
  async removeWithBasin(commit: Commit, stream: Versioned<StreamDocument>): Promise<void> {
    const { value: document } = stream
    const { logId, deletedAt } = document
    if (deletedAt === undefined) {
      await this.#remove(commit, document, [deletionOf(stream), { kind: 'delete-log', logId }])
    } else await commit([deletionOf(stream)])
  }

  async #remove(commit: Commit, document: StreamDocument, changes: readonly CatalogChange[]): Promise<void> {
    await this.#commit(document, 'deleted', commit(changes))
    this.#usage.basinActive(document.basin)
    this.#work.reclaimAt(this.#clock.now())
  }

  /**
   * Replaces the configuration. Appends that were sequenced under the old one are sequenced again. A longer
   * retention extends the records that are stored.
   */
  async reconfigure(
    commit: Commit,
    { value: previous, version }: Versioned<StreamDocument>,
    config: StreamConfig,
  ): Promise<StreamDocument> {
    const document = { ...previous, config, epoch: previous.epoch + 1 }
    const extensions = await this.#extensionsAfter(previous, config.retentionPolicy)
    const wasOff = previous.config.deleteOnEmpty.minAgeSeconds === 0
    const changes: CatalogChange[] = [
      putStream(document, version),
      {
        kind: 'set-epoch',
        logId: document.logId,
        epoch: document.epoch,
        ...(extensions && { extensions }),
      },
      ...(wasOff ? emptyDeadline(document, this.#clock.now()) : []),
    ]
    await this.#commit(document, 'reconfigured', commit(changes))
    return document
  }

  /** The extensions of the stream's records by another policy; undefined if they stay as they are. */
  async #extensionsAfter(
    { config, logId, epoch }: StreamDocument,
    to: RetentionPolicy,
  ): Promise<readonly RetentionExtension[] | undefined> {
    const from = config.retentionPolicy
    if (JSON.stringify(from) === JSON.stringify(to)) return undefined
    // Read after the document, and changed only together with it: if they differ, the commit would conflict.
    const head = await this.#session.head(logId)
    if (head?.epoch !== epoch) throw new StorageConflict('the stream was changed meanwhile')
    const { extensions = [] } = head
    const next = extendRetention(extensions, { from, to }, head.tail.seqNum, this.#clock.now())
    return next === extensions ? undefined : next
  }

  async #commit(
    { basin, name, logId }: StreamDocument,
    change: 'deleted' | 'reconfigured',
    commit: Promise<void>,
  ): Promise<void> {
    const ref = { basin, stream: name }
    try {
      await commit
    } catch (error) {
      if (!StorageConflict.is(error)) this.#table.changed(ref, logId, 'uncertain')
      throw error
    }
    this.#table.changed(ref, logId, change)
  }
}

/** Deletes the document of a stream. */
function deletionOf({ value: { basin, name }, version }: Versioned<StreamDocument>): CatalogChange {
  return { kind: 'delete', collection: 'streams', key: streamKey(basin, name), expect: version }
}

/** Counts one more fork of a stream. */
export function addFork({ value, version }: Versioned<StreamDocument>): CatalogChange {
  return putStream({ ...value, forks: (value.forks ?? 0) + 1 }, version)
}

/**
 * Counts one fork less of the stream that a deleted stream was a copy of. Frees the name of a deleted stream
 * with its last fork, and so on with the stream that it was a copy of.
 */
async function releaseSource(
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
    changes.push(deletionOf(document))
    link = source.forkOf
  }
  return changes
}

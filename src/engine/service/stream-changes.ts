import { extendRetention, type RetentionExtension } from '../../core/retention.ts'
import type { RetentionPolicy, StreamConfig } from '../../model/config.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import { putStream, type StreamDocument, type Versioned } from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { type Commit, deleteStream } from '../streams/catalog.ts'
import { releaseSource } from '../streams/fork.ts'
import type { StreamTable } from '../streams/table.ts'
import { emptyDeadline } from './deadlines.ts'
import type { UsageRecorder } from './usage.ts'

export interface StreamChangesContext {
  readonly session: Pick<StorageSession, 'head' | 'get'>
  readonly table: StreamTable
  readonly usage: UsageRecorder
  readonly work: { reclaimAt(time: number): void }
  readonly clock: Clock
}

/** Removes or reconfigures one incarnation of a stream, and tells the stream table. */
export class StreamChanges {
  readonly #context: StreamChangesContext

  constructor(context: StreamChangesContext) {
    this.#context = context
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
    const { session, clock } = this.#context
    const changes: readonly CatalogChange[] =
      (document.forks ?? 0) > 0
        ? [putStream({ ...document, deletedAt: clock.now() }, version)]
        : [deleteStream(stream), ...(await releaseSource(session, document))]
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
      await this.#remove(commit, document, [deleteStream(stream), { kind: 'delete-log', logId }])
    } else await commit([deleteStream(stream)])
  }

  async #remove(commit: Commit, document: StreamDocument, changes: readonly CatalogChange[]): Promise<void> {
    await this.#commit(document, 'deleted', commit(changes))
    const { usage, work, clock } = this.#context
    usage.basinActive(document.basin)
    work.reclaimAt(clock.now())
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
      ...(wasOff ? emptyDeadline(document, this.#context.clock.now()) : []),
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
    const { session, clock } = this.#context
    const head = await session.head(logId)
    if (head?.epoch !== epoch) throw new StorageConflict('the stream was changed meanwhile')
    const { extensions = [] } = head
    const next = extendRetention(extensions, { from, to }, head.tail.seqNum, clock.now())
    return next === extensions ? undefined : next
  }

  async #commit(
    { basin, name, logId }: StreamDocument,
    change: 'deleted' | 'reconfigured',
    commit: Promise<void>,
  ): Promise<void> {
    const { table } = this.#context
    const ref = { basin, stream: name }
    try {
      await commit
    } catch (error) {
      if (!StorageConflict.is(error)) table.changed(ref, logId, 'uncertain')
      throw error
    }
    table.changed(ref, logId, change)
  }
}

import { mergeStreamConfig, reconfiguredStream } from '../../core/config.ts'
import { decideCreate, decideEnsure, sameConfig, streamCreationKey } from '../../core/provision.ts'
import { extendRetention, type RetentionExtension } from '../../core/retention.ts'
import {
  assertStreamConfig,
  type RetentionPolicy,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../model/config.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import {
  assertStreamCreation,
  type ListQuery,
  type Page,
  type Provisioned,
  RESTORED_STREAM,
  type RestoredStream,
  type StreamCreation,
  type StreamInfo,
} from '../../model/info.ts'
import { requestTokenProblem, type StreamRef, streamPrefixProblem } from '../../model/names.ts'
import type { StreamPosition } from '../../model/position.ts'
import { assertMembers, millisecondsOf } from '../../model/validation.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import { putStream, type StreamDocument, streamKey, type Versioned } from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { EngineContext } from '../context.ts'
import { streamExists, streamNotFound } from '../errors.ts'
import { type Catalog, type Commit, deleteStream } from '../streams/catalog.ts'
import { createLog, emptyDeadline, type StreamCreator } from '../streams/create.ts'
import type { StreamTable } from '../streams/table.ts'
import type { BackgroundWork } from './background.ts'
import type { Deadlines } from './deadlines.ts'
import { type InitialContent, releaseSource, type StreamBuilder } from './fork.ts'

/** Throws if the change that was decided on is not permitted. */
export type ChangeCheck = (change: 'create' | 'update') => void

/** The members of a creation that are stored as they are. */
type CreateStreamRequest = Pick<StreamCreation, 'metadata' | 'expiry' | 'fork'> & {
  readonly requestToken?: string | undefined
}

export interface StreamServiceContext extends EngineContext {
  readonly catalog: Catalog
  readonly table: StreamTable
  readonly creator: StreamCreator
  readonly builder: StreamBuilder
  readonly deadlines: Deadlines
  readonly work: BackgroundWork
}

/** Streams and their configuration (docs/protocol.md "Basins and streams"). */
export class StreamService {
  readonly #context: StreamServiceContext

  constructor(context: StreamServiceContext) {
    this.#context = context
  }

  /** `content` is what the stream holds at first. */
  async create(
    ref: StreamRef,
    config: StreamConfigInput,
    { requestToken, metadata, expiry, fork }: CreateStreamRequest,
    defaultRetention: RetentionPolicy | undefined,
    content?: InitialContent,
  ): Promise<Provisioned<StreamInfo>> {
    const { catalog, creator, builder, deadlines } = this.#context
    if (requestToken !== undefined) assertValid(requestTokenProblem(requestToken), 'requestToken')
    assertStreamConfig(config)
    assertStreamCreation({ metadata, expiry, fork })
    const creationKey = streamCreationKey(requestToken, config)
    // Waits for calls before this one only: two streams may be created as forks of each other.
    const source = content?.fork?.target.ref
    const sourceChanged = source && catalog.pendingChange(streamKey(source.basin, source.stream))
    return catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await catalog.activeBasin(ref.basin)
      const existing = (await deadlines.find(ref))?.value
      const decision = decideCreate(existing, creationKey)
      if (decision === 'exists') throw streamExists(ref)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!) }
      const settings = { config, defaultRetention, creationKey, metadata, expiry }
      const document = creator.newStream(basin.value, ref, settings)
      if (content === undefined) {
        await creator.add(commit, document, basin)
        return { result: 'created', info: streamInfo(document) }
      }
      await sourceChanged
      const built = await builder.create(commit, document, basin, content)
      return { result: 'created', info: streamInfo(built) }
    })
  }

  async ensure(
    ref: StreamRef,
    config: StreamConfigInput,
    defaultRetention: RetentionPolicy | undefined,
    check: ChangeCheck,
  ): Promise<Provisioned<StreamInfo>> {
    const { catalog, creator, deadlines } = this.#context
    assertStreamConfig(config)
    return catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await catalog.activeBasin(ref.basin)
      const existing = await deadlines.find(ref)
      const desired = mergeStreamConfig(config, basin.value.config.defaultStreamConfig, defaultRetention)
      const decision = decideEnsure(existing?.value, desired)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!.value) }
      check(decision)
      if (decision === 'update') {
        const document = await this.#reconfigure(commit, existing!, desired)
        return { result: 'updated', info: streamInfo(document) }
      }
      const document = creator.newStream(basin.value, ref, { config, defaultRetention })
      await creator.add(commit, document, basin)
      return { result: 'created', info: streamInfo(document) }
    })
  }

  /** Creates a stream that begins at a position. Rejects with `resource_already_exists`. */
  async restore(
    ref: StreamRef,
    restored: RestoredStream,
    defaultRetention: RetentionPolicy | undefined,
    createsBasin = false,
  ): Promise<StreamInfo> {
    const { catalog, creator, deadlines } = this.#context
    assertMembers(restored, RESTORED_STREAM, 'restored')
    const { start, fencingToken = '', ...settings } = restored
    if (start === undefined) throw invalid('`start` is required', 'start')
    const tail: StreamPosition = { seqNum: start.seqNum, timestamp: millisecondsOf(start.timestamp) }
    if (createsBasin) await catalog.createBasinIfMissing(ref.basin, defaultRetention)
    return catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await catalog.activeBasin(ref.basin)
      if ((await deadlines.find(ref)) !== undefined) throw streamExists(ref)
      const document = creator.newStream(basin.value, ref, { ...settings, defaultRetention })
      await creator.add(commit, document, basin, [createLog(document, { tail, fencingToken })])
      return streamInfo(document)
    })
  }

  async list(basin: string, query: ListQuery): Promise<Page<StreamInfo>> {
    const { catalog } = this.#context
    const { prefix = '', startAfter = '' } = query
    assertValid(streamPrefixProblem(prefix, 'prefix'), 'prefix')
    assertValid(streamPrefixProblem(startAfter, 'start-after'), 'startAfter')
    await catalog.existingBasin(basin)
    return catalog.page('streams', query, streamInfo, streamKey(basin, ''))
  }

  async config(ref: StreamRef): Promise<StreamConfig> {
    await this.#context.catalog.existingBasin(ref.basin)
    return (await this.#existing(ref)).value.config
  }

  /** Resolves to the id of the stream's log. Rejects with `stream_not_found`. */
  async logId(ref: StreamRef): Promise<string> {
    return (await this.#existing(ref)).value.logId
  }

  async reconfigure(
    ref: StreamRef,
    change: StreamReconfiguration,
    defaultRetention: RetentionPolicy | undefined,
  ): Promise<StreamConfig> {
    const { catalog } = this.#context
    assertStreamConfig(change)
    return catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await catalog.activeBasin(ref.basin)
      const stream = await this.#existing(ref)
      const { config } = stream.value
      const next = reconfiguredStream(
        config,
        change,
        basin.value.config.defaultStreamConfig,
        defaultRetention,
      )
      if (!sameConfig(config, next)) await this.#reconfigure(commit, stream, next)
      return next
    })
  }

  /** Rejects with `stream_not_found`. */
  async #existing(ref: StreamRef): Promise<Versioned<StreamDocument>> {
    const stream = await this.#context.deadlines.find(ref)
    if (stream === undefined) throw streamNotFound(ref)
    return stream
  }

  /** Deletes the stream: its open sessions have ended then and, unless it has forks, its name is free. */
  async delete(ref: StreamRef): Promise<void> {
    const { catalog } = this.#context
    await catalog.existingBasin(ref.basin)
    await catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      await this.remove(commit, await this.#existing(ref))
    })
  }

  // Changes of one incarnation of a stream, which the stream table receives

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
  async #reconfigure(
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

function streamInfo({ name, createdAt, deletedAt, cipher, metadata, expiry }: StreamDocument): StreamInfo {
  return {
    name,
    createdAt: new Date(createdAt),
    deletedAt: deletedAt === undefined ? null : new Date(deletedAt),
    cipher,
    ...(metadata !== undefined && { metadata }),
    ...(expiry !== undefined && { expiry: 'at' in expiry ? { at: new Date(expiry.at) } : expiry }),
  }
}

import { mergeStreamConfig, reconfiguredStream } from '../../core/config.ts'
import type { Expiry } from '../../core/lifetime.ts'
import { decideCreate, decideEnsure, sameConfig, streamCreationKey } from '../../core/provision.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type RetentionPolicy,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../model/config.ts'
import {
  assertStreamCreation,
  RESTORED_STREAM,
  type RestoredStream,
  type StreamCreation,
} from '../../model/creation.ts'
import { assertValid, HeadwaterError, invalid } from '../../model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../model/info.ts'
import {
  fencingTokenProblem,
  requestTokenProblem,
  type StreamRef,
  streamNameProblem,
  streamPrefixProblem,
} from '../../model/names.ts'
import type { StreamPosition } from '../../model/position.ts'
import { assertInteger, assertMembers, millisecondsOf } from '../../model/validation.ts'
import {
  type BasinDocument,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { streamNotFound } from '../streams/errors.ts'
import type { ChangeCheck } from './basin-service.ts'
import type { Catalog, Commit } from './catalog.ts'
import type { Deadlines } from './deadlines.ts'
import type { BuiltLog, InitialContent, StreamBuilder } from './stream-builder.ts'
import { addFork, type StreamChanges } from './stream-changes.ts'
import type { StreamCreator } from './stream-creator.ts'

/** The members of a creation that are stored as they are. */
type CreateStreamRequest = Pick<StreamCreation, 'metadata' | 'expiry' | 'fork'> & {
  readonly requestToken?: string | undefined
}

/** Streams and their configuration (docs/protocol.md "Basins and streams"). */
export class StreamService {
  readonly #catalog: Catalog
  readonly #creator: StreamCreator
  readonly #changes: StreamChanges
  readonly #builder: StreamBuilder
  readonly #deadlines: Deadlines

  constructor(
    catalog: Catalog,
    creator: StreamCreator,
    changes: StreamChanges,
    builder: StreamBuilder,
    deadlines: Deadlines,
  ) {
    this.#catalog = catalog
    this.#creator = creator
    this.#changes = changes
    this.#builder = builder
    this.#deadlines = deadlines
  }

  /** `content` is what the stream holds at first. */
  async create(
    ref: StreamRef,
    config: StreamConfigInput,
    { requestToken, metadata, expiry, fork }: CreateStreamRequest,
    defaultRetention: RetentionPolicy | undefined,
    content?: InitialContent,
  ): Promise<Provisioned<StreamInfo>> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    if (requestToken !== undefined) assertValid(requestTokenProblem(requestToken), 'requestToken')
    assertStreamConfig(config)
    assertStreamCreation({ metadata, expiry, fork })
    const creationKey = streamCreationKey(requestToken, config)
    // Waits for calls before this one only: two streams may be created as forks of each other.
    const source = content?.fork?.target.ref
    const sourceChanged = source && this.#catalog.pendingChange(streamKey(source.basin, source.stream))
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      const existing = (await this.#stream(ref))?.value
      const decision = decideCreate(existing, creationKey)
      if (decision === 'exists') throw streamExists(ref)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!) }
      const document: StreamDocument = {
        ...this.#creator.newStream(basin.value, ref, config, creationKey, defaultRetention),
        ...lastingMembers({ metadata, expiry }),
      }
      if (content === undefined) await this.#creator.add(commit, document, basin)
      else {
        await sourceChanged
        await this.#createWith(content, commit, document, basin)
      }
      return { result: 'created', info: streamInfo(document) }
    })
  }

  async #createWith(
    content: InitialContent,
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
  ): Promise<void> {
    const built = await this.#builder.build(document, content)
    const { changes } = built
    try {
      if (content.fork === undefined) await this.#creator.publish(commit, document, basin, changes)
      else await this.#publishFork(document, basin, content.fork.target.ref, built)
    } catch (error) {
      const isCertain = StorageConflict.is(error) || (HeadwaterError.is(error) && !error.mayHaveEffects)
      // Otherwise the stream may exist. If it does not, the deadline removes the log.
      if (isCertain) await this.#builder.discard(document).catch(() => {})
      throw error
    }
  }

  async #publishFork(
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    source: StreamRef,
    { changes, sourceId }: BuiltLog,
  ): Promise<void> {
    const { stream } = source
    // Forks of one stream in turn, because each changes its document.
    await this.#catalog.change(`fork\0${streamKey(source.basin, stream)}`, async (commit, isRepeated) => {
      const ref = { basin: document.basin, stream: document.name }
      if (isRepeated && (await this.#stream(ref)) !== undefined) throw streamExists(ref)
      const current = isRepeated ? await this.#catalog.activeBasin(ref.basin) : basin
      const forked = await this.#existing(source)
      if (forked.value.logId !== sourceId) throw streamNotFound(source)
      const fork = { ...document, forkOf: { stream, logId: forked.value.logId } }
      await this.#creator.publish(commit, fork, current, [...changes, addFork(forked)])
    })
  }

  async ensure(
    ref: StreamRef,
    config: StreamConfigInput,
    defaultRetention: RetentionPolicy | undefined,
    check: ChangeCheck,
  ): Promise<Provisioned<StreamInfo>> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    assertStreamConfig(config)
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      const existing = await this.#stream(ref)
      const desired = mergeStreamConfig(config, basin.value.config.defaultStreamConfig, defaultRetention)
      const decision = decideEnsure(existing?.value, desired)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!.value) }
      check(decision)
      if (decision === 'update') {
        const document = await this.#changes.reconfigure(commit, existing!, desired)
        return { result: 'updated', info: streamInfo(document) }
      }
      const document = this.#creator.newStream(basin.value, ref, config, null, defaultRetention)
      await this.#creator.add(commit, document, basin)
      return { result: 'created', info: streamInfo(document) }
    })
  }

  /** Creates a stream that begins at a position. Rejects with `resource_already_exists`. */
  async restore(
    ref: StreamRef,
    restored: RestoredStream,
    defaultRetention: RetentionPolicy | undefined,
  ): Promise<StreamInfo> {
    assertMembers(restored, RESTORED_STREAM, 'restored')
    const { config = {}, start, fencingToken = '', cipher, metadata, expiry } = restored
    if (start === undefined) throw invalid('`start` is required', 'start')
    assertValid(streamNameProblem(ref.stream), 'stream')
    assertStreamConfig(config)
    const tail: StreamPosition = { seqNum: start.seqNum, timestamp: millisecondsOf(start.timestamp) }
    assertInteger(tail.seqNum, 'start.seqNum')
    assertInteger(tail.timestamp, 'start.timestamp')
    assertValid(fencingTokenProblem(fencingToken), 'fencingToken')
    assertBasinConfig({ streamCipher: cipher })
    assertStreamCreation({ metadata, expiry })
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      if ((await this.#stream(ref)) !== undefined) throw streamExists(ref)
      const stream = this.#creator.newStream(basin.value, ref, config, null, defaultRetention)
      const document: StreamDocument = {
        ...stream,
        ...(cipher !== undefined && { cipher }),
        ...lastingMembers({ metadata, expiry }),
      }
      await this.#creator.add(commit, document, basin, { tail, fencingToken })
      return streamInfo(document)
    })
  }

  async list(basin: string, query: ListQuery): Promise<Page<StreamInfo>> {
    const { prefix = '', startAfter = '' } = query
    assertValid(streamPrefixProblem(prefix, 'prefix'), 'prefix')
    assertValid(streamPrefixProblem(startAfter, 'start-after'), 'startAfter')
    await this.#catalog.existingBasin(basin)
    return this.#catalog.page('streams', query, streamInfo, streamKey(basin, ''))
  }

  async config(ref: StreamRef): Promise<StreamConfig> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    await this.#catalog.existingBasin(ref.basin)
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
    assertValid(streamNameProblem(ref.stream), 'stream')
    assertStreamConfig(change)
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      const stream = await this.#existing(ref)
      const { config } = stream.value
      const next = reconfiguredStream(
        config,
        change,
        basin.value.config.defaultStreamConfig,
        defaultRetention,
      )
      if (!sameConfig(config, next)) await this.#changes.reconfigure(commit, stream, next)
      return next
    })
  }

  /** Resolves to undefined if there is none, or it has expired. Rejects if only its name is in use. */
  async #stream(ref: StreamRef): Promise<Versioned<StreamDocument> | undefined> {
    const stream = await this.#catalog.stream(ref)
    return stream && (await this.#deadlines.live(stream.value)) && stream
  }

  /** Rejects with `stream_not_found`. */
  async #existing(ref: StreamRef): Promise<Versioned<StreamDocument>> {
    const stream = await this.#stream(ref)
    if (stream === undefined) throw streamNotFound(ref)
    return stream
  }

  /**
   * Deletes the stream in one commit: afterwards its open sessions have ended and, unless it has forks, its
   * name is free.
   */
  async delete(ref: StreamRef): Promise<void> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    await this.#catalog.existingBasin(ref.basin)
    await this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      await this.#changes.remove(commit, await this.#existing(ref))
    })
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

/** Returns the members of a document that never change after its creation. */
function lastingMembers({
  metadata,
  expiry,
}: Pick<StreamCreation, 'metadata' | 'expiry'>): Pick<StreamDocument, 'metadata' | 'expiry'> {
  return {
    ...(metadata !== undefined && { metadata: { ...metadata } }),
    ...(expiry !== undefined && { expiry: storedExpiry(expiry) }),
  }
}

function storedExpiry(expiry: NonNullable<StreamCreation['expiry']>): Expiry {
  return 'at' in expiry ? { at: millisecondsOf(expiry.at) } : { idleSeconds: expiry.idleSeconds }
}

function streamExists({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError(
    'resource_already_exists',
    `stream \`${shownAs}\` in basin \`${basin}\` already exists`,
  )
}

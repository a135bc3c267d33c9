import { listLimit, pageOf } from '../core/listing.ts'
import { decideCreate, decideEnsure, sameConfig, streamCreationKey } from '../core/provision.ts'
import { firstCheckAt } from '../core/retention.ts'
import { mergeStreamConfig, reconfigureStream } from '../core/stream-config.ts'
import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../model/config.ts'
import { checkStreamConfig } from '../model/config-validation.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../model/info.ts'
import { refuse, requestTokenProblem, streamNameProblem, streamPrefixProblem } from '../model/names.ts'
import type { CatalogChange, LogStart } from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'
import type { Basins } from './basins.ts'
import type { Versioned } from './catalog.ts'
import type { EngineContext, StreamRef } from './context.ts'
import {
  asJson,
  type BasinDocument,
  deadlineKey,
  type StreamDocument,
  streamInfo,
  streamKey,
} from './documents.ts'
import { storageError } from './errors.ts'
import { checkRestoredStream, type RestoredStream } from './restored-stream.ts'
import type { ChangeCheck, StreamService } from './services.ts'

type Commit = (changes: readonly CatalogChange[]) => Promise<void>

/** The streams of all basins of an engine: everything but their records (wire-behaviour.md 8). */
export class Streams implements StreamService {
  readonly #engine: EngineContext
  readonly #basins: Basins

  constructor(engine: EngineContext, basins: Basins) {
    this.#engine = engine
    this.#basins = basins
  }

  async create(
    ref: StreamRef,
    config: StreamConfigInput,
    requestToken: string | undefined,
  ): Promise<Provisioned<StreamInfo>> {
    refuse(streamNameProblem(ref.stream), 'stream')
    if (requestToken !== undefined) refuse(requestTokenProblem(requestToken), 'request_token')
    checkStreamConfig(config)
    const creationKey = streamCreationKey(requestToken, config)
    return this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#basins.active(ref.basin)
      const existing = (await this.#find(ref))?.value
      const decision = decideCreate(
        existing && { deleting: false, creationKey: existing.creationKey },
        creationKey,
      )
      if (decision === 'exists') throw alreadyExists(ref)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!) }
      const document = this.#newDocument(basin.value, ref, config, creationKey)
      await this.#add(commit, document, basin)
      return { result: 'created', info: streamInfo(document) }
    })
  }

  async ensure(
    ref: StreamRef,
    config: StreamConfigInput,
    check?: ChangeCheck,
  ): Promise<Provisioned<StreamInfo>> {
    refuse(streamNameProblem(ref.stream), 'stream')
    checkStreamConfig(config)
    return this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#basins.active(ref.basin)
      const existing = await this.#find(ref)
      const desired = mergeStreamConfig(config, basin.value.config.defaultStreamConfig)
      const decision = decideEnsure(existing && { deleting: false, config: existing.value.config }, desired)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!.value) }
      // A stream is never found while it is being deleted.
      if (decision !== 'deleting') check?.(decision)
      if (decision === 'update') {
        const document = await this.#replaceConfig(commit, existing!, desired)
        return { result: 'updated', info: streamInfo(document) }
      }
      const document = this.#newDocument(basin.value, ref, config, null)
      await this.#add(commit, document, basin)
      return { result: 'created', info: streamInfo(document) }
    })
  }

  /** Creates a stream that begins at a position. It must not exist: 409 `resource_already_exists`. */
  async restore(ref: StreamRef, restored: RestoredStream): Promise<StreamInfo> {
    const { config = {}, start, fencingToken = '', cipher } = restored
    refuse(streamNameProblem(ref.stream), 'stream')
    checkStreamConfig(config)
    checkRestoredStream(restored)
    return this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#basins.active(ref.basin)
      if ((await this.#find(ref)) !== undefined) throw alreadyExists(ref)
      const made = this.#newDocument(basin.value, ref, config, null)
      const document = cipher === undefined ? made : { ...made, cipher }
      await this.#add(commit, document, basin, { tail: start, fencingToken })
      return streamInfo(document)
    })
  }

  async list(basin: string, query: ListQuery): Promise<Page<StreamInfo>> {
    const { prefix = '', startAfter = '' } = query
    refuse(streamPrefixProblem(prefix, 'prefix'), 'prefix')
    refuse(streamPrefixProblem(startAfter, 'start-after'), 'start_after')
    await this.#basins.existing(basin)
    const limit = listLimit(query.limit)
    const range = { prefix: streamKey(basin, prefix), after: streamKey(basin, startAfter), limit: limit + 1 }
    const documents = await storageError(this.#engine.session.list('streams', range))
    return pageOf(documents, limit, ({ value }) => streamInfo(value as unknown as StreamDocument))
  }

  async config(ref: StreamRef): Promise<StreamConfig> {
    refuse(streamNameProblem(ref.stream), 'stream')
    await this.#basins.existing(ref.basin)
    return (await this.#existing(ref)).value.config
  }

  async reconfigure(ref: StreamRef, change: StreamReconfiguration): Promise<StreamConfig> {
    refuse(streamNameProblem(ref.stream), 'stream')
    checkStreamConfig(change)
    return this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#basins.active(ref.basin)
      const stream = await this.#existing(ref)
      const { config } = stream.value
      const next = reconfigureStream(config, change, basin.value.config.defaultStreamConfig)
      if (!sameConfig(config, next)) await this.#replaceConfig(commit, stream, next)
      return next
    })
  }

  /** The stream is gone when this resolves: nobody reads or appends to it any more, and its name is free. */
  async delete(ref: StreamRef): Promise<void> {
    refuse(streamNameProblem(ref.stream), 'stream')
    await this.#basins.existing(ref.basin)
    await this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const { value, version } = await this.#existing(ref)
      await this.remove(commit, value, version)
    })
  }

  /** Deletes one incarnation; with `expectSeqNum` only while nothing more was appended. */
  async remove(
    commit: Commit,
    document: StreamDocument,
    version: number,
    condition: { readonly expectSeqNum?: number } = {},
  ): Promise<void> {
    const key = streamKey(document.basin, document.name)
    const changes: CatalogChange[] = [
      { kind: 'delete', collection: 'streams', key, expect: version },
      { kind: 'delete-log', logId: document.logId, ...condition },
    ]
    await this.#tell(document, 'deleted', commit(changes))
    this.#engine.usage.streamDeleted(document.basin, document.createdAt)
    this.#engine.background.reclaimSoon(0)
  }

  /**
   * Creates the stream that an append or a read came for, if the basin's configuration allows (wire-behaviour.md 8.6), or always: then a
   * missing basin too. Losing a race against another creation is as good as winning it.
   */
  async autoCreate(
    ref: StreamRef,
    purpose: 'append' | 'read',
    policy: { readonly always: boolean; readonly config?: StreamConfigInput | undefined },
  ): Promise<void> {
    refuse(streamNameProblem(ref.stream), 'stream')
    if (policy.config !== undefined) checkStreamConfig(policy.config)
    if (policy.always && (await this.#engine.catalog.basin(ref.basin)) === undefined) {
      await this.#basins.ensure(ref.basin, {}, {})
    }
    await this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#basins.existing(ref.basin)
      const { createStreamOnAppend, createStreamOnRead } = basin.value.config
      const allowed = policy.always || (purpose === 'append' ? createStreamOnAppend : createStreamOnRead)
      if (!allowed) throw notFound(ref)
      await this.#basins.active(ref.basin)
      if ((await this.#find(ref)) !== undefined) return
      await this.#add(commit, this.#newDocument(basin.value, ref, policy.config ?? {}, null), basin)
    })
  }

  async #add(
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    start?: LogStart,
  ): Promise<void> {
    await commit(creation(document, basin, start))
    this.#engine.usage.streamCreated(document.basin)
  }

  async #find(ref: StreamRef): Promise<Versioned<StreamDocument> | undefined> {
    return this.#engine.catalog.stream(ref.basin, ref.stream)
  }

  async #existing(ref: StreamRef): Promise<Versioned<StreamDocument>> {
    const stream = await this.#find(ref)
    if (stream === undefined) throw notFound(ref)
    return stream
  }

  async #replaceConfig(
    commit: Commit,
    stream: Versioned<StreamDocument>,
    config: StreamConfig,
  ): Promise<StreamDocument> {
    const previous = stream.value
    const document = { ...previous, config, epoch: previous.epoch + 1 }
    const wasOff = previous.config.deleteOnEmpty.minAgeSeconds === 0
    const changes: CatalogChange[] = [
      put(document, stream.version),
      { kind: 'set-epoch', logId: document.logId, epoch: document.epoch },
      ...(wasOff ? firstDeadline(document, this.#engine.settings.clock.now()) : []),
    ]
    await this.#tell(document, 'reconfigured', commit(changes))
    return document
  }

  /** Tells who uses the stream what a commit did to it, or that this is not known. */
  async #tell(
    { basin, name, logId }: StreamDocument,
    change: 'deleted' | 'reconfigured',
    commit: Promise<void>,
  ): Promise<void> {
    const ref = { basin, stream: name }
    try {
      await commit
    } catch (error) {
      if (!StorageConflict.is(error)) this.#engine.logs.onChanged(ref, logId, 'uncertain')
      throw error
    }
    this.#engine.logs.onChanged(ref, logId, change)
  }

  #newDocument(
    basin: BasinDocument,
    ref: StreamRef,
    config: StreamConfigInput,
    creationKey: string | null,
  ): StreamDocument {
    return {
      basin: ref.basin,
      name: ref.stream,
      logId: this.#engine.settings.newId(),
      createdAt: this.#engine.settings.clock.now(),
      config: mergeStreamConfig(config, basin.config.defaultStreamConfig),
      cipher: basin.config.streamCipher,
      epoch: 1,
      creationKey,
    }
  }
}

/** Creates the stream only in the basin as it was looked at: a basin that is being deleted gets no more streams. */
function creation(
  document: StreamDocument,
  basin: Versioned<BasinDocument>,
  start: LogStart | undefined,
): CatalogChange[] {
  const { logId, epoch, createdAt } = document
  return [
    { kind: 'check', collection: 'basins', key: basin.value.name, expect: basin.version },
    put(document, null),
    { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) },
    ...firstDeadline(document, createdAt),
  ]
}

function firstDeadline(document: StreamDocument, now: number): CatalogChange[] {
  const { minAgeSeconds } = document.config.deleteOnEmpty
  if (minAgeSeconds === 0) return []
  const { basin, name, logId } = document
  const key = deadlineKey(firstCheckAt(minAgeSeconds, now), logId)
  return [{ kind: 'put', collection: 'deadlines', key, value: asJson({ basin, stream: name, logId }) }]
}

function put(document: StreamDocument, expect: number | null): CatalogChange {
  const key = streamKey(document.basin, document.name)
  return { kind: 'put', collection: 'streams', key, value: asJson(document), expect }
}

function notFound({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError('stream_not_found', `stream \`${shownAs}\` in basin \`${basin}\` not found`)
}

function alreadyExists({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError(
    'resource_already_exists',
    `stream \`${shownAs}\` in basin \`${basin}\` already exists`,
  )
}

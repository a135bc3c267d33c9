import { listLimit, pageOf } from '../../core/listing.ts'
import { decideCreate, decideEnsure, sameConfig, streamCreationKey } from '../../core/provision.ts'
import { mergeStreamConfig } from '../../core/stream-config.ts'
import { reconfigureStream } from '../../core/stream-reconfiguration.ts'
import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../../model/config.ts'
import { checkStreamConfig } from '../../model/config-validation.ts'
import { refuse } from '../../model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../model/info.ts'
import { requestTokenProblem, streamNameProblem, streamPrefixProblem } from '../../model/names.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { Versioned } from '../catalog.ts'
import type { EngineContext, StreamRef } from '../context.ts'
import { type StreamDocument, streamKey } from '../documents.ts'
import { storageError } from '../errors.ts'
import { streamExists, streamNotFound } from '../existence-errors.ts'
import { activeBasin, existingBasin } from '../find-basin.ts'
import { addStream, firstDeadline, newStream, putStream } from '../new-stream.ts'
import type { ChangeCheck, StreamService } from '../services.ts'
import { streamInfo } from './infos.ts'
import { checkRestoredStream, type RestoredStream } from './restored-stream.ts'

type Commit = (changes: readonly CatalogChange[]) => Promise<void>

/** The streams of all basins of an engine: everything but their records (wire-behaviour.md 8). */
export class Streams implements StreamService {
  readonly #engine: EngineContext

  constructor(engine: EngineContext) {
    this.#engine = engine
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
      const basin = await activeBasin(this.#engine, ref.basin)
      const existing = (await this.#find(ref))?.value
      const decision = decideCreate(
        existing && { deleting: false, creationKey: existing.creationKey },
        creationKey,
      )
      if (decision === 'exists') throw streamExists(ref)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!) }
      const document = newStream(this.#engine, basin.value, ref, config, creationKey)
      await addStream(this.#engine, commit, document, basin)
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
      const basin = await activeBasin(this.#engine, ref.basin)
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
      const document = newStream(this.#engine, basin.value, ref, config, null)
      await addStream(this.#engine, commit, document, basin)
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
      const basin = await activeBasin(this.#engine, ref.basin)
      if ((await this.#find(ref)) !== undefined) throw streamExists(ref)
      const made = newStream(this.#engine, basin.value, ref, config, null)
      const document = cipher === undefined ? made : { ...made, cipher }
      await addStream(this.#engine, commit, document, basin, { tail: start, fencingToken })
      return streamInfo(document)
    })
  }

  async list(basin: string, query: ListQuery): Promise<Page<StreamInfo>> {
    const { prefix = '', startAfter = '' } = query
    refuse(streamPrefixProblem(prefix, 'prefix'), 'prefix')
    refuse(streamPrefixProblem(startAfter, 'start-after'), 'start_after')
    await existingBasin(this.#engine, basin)
    const limit = listLimit(query.limit)
    const range = { prefix: streamKey(basin, prefix), after: streamKey(basin, startAfter), limit: limit + 1 }
    const documents = await storageError(this.#engine.session.list('streams', range))
    return pageOf(documents, limit, ({ value }) => streamInfo(value as unknown as StreamDocument))
  }

  async config(ref: StreamRef): Promise<StreamConfig> {
    refuse(streamNameProblem(ref.stream), 'stream')
    await existingBasin(this.#engine, ref.basin)
    return (await this.#existing(ref)).value.config
  }

  async reconfigure(ref: StreamRef, change: StreamReconfiguration): Promise<StreamConfig> {
    refuse(streamNameProblem(ref.stream), 'stream')
    checkStreamConfig(change)
    return this.#engine.catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await activeBasin(this.#engine, ref.basin)
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
    await existingBasin(this.#engine, ref.basin)
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
    this.#engine.rest.tell(({ background }) => background.reclaimSoon(0))
  }

  async #find(ref: StreamRef): Promise<Versioned<StreamDocument> | undefined> {
    return this.#engine.catalog.stream(ref.basin, ref.stream)
  }

  async #existing(ref: StreamRef): Promise<Versioned<StreamDocument>> {
    const stream = await this.#find(ref)
    if (stream === undefined) throw streamNotFound(ref)
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
      putStream(document, stream.version),
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
}

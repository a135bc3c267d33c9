import { mergeStreamConfig, reconfiguredStream } from '../../core/config.ts'
import { decideCreate, decideEnsure, sameConfig, streamCreationKey } from '../../core/provision.ts'
import type {
  RetentionPolicy,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
} from '../../model/config.ts'
import { assertBasinConfig, assertStreamConfig } from '../../model/config.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../model/info.ts'
import {
  fencingTokenProblem,
  requestTokenProblem,
  type StreamRef,
  streamNameProblem,
  streamPrefixProblem,
} from '../../model/names.ts'
import type { StreamPosition } from '../../model/position.ts'
import { RESTORED_STREAM, type RestoredStream } from '../../model/restored-stream.ts'
import { assertInteger, assertMembers, millisecondsOf } from '../../model/validation.ts'
import { type StreamDocument, streamKey } from '../../storage/documents.ts'
import type { ChangeCheck } from './basin-service.ts'
import type { Catalog } from './catalog.ts'
import { streamExists } from './errors.ts'
import type { StreamChanges } from './stream-changes.ts'
import type { StreamCreator } from './stream-creator.ts'

/** Streams and their configuration (docs/protocol.md "Basins and streams"). */
export class StreamService {
  readonly #catalog: Catalog
  readonly #creator: StreamCreator
  readonly #changes: StreamChanges

  constructor(catalog: Catalog, creator: StreamCreator, changes: StreamChanges) {
    this.#catalog = catalog
    this.#creator = creator
    this.#changes = changes
  }

  async create(
    ref: StreamRef,
    config: StreamConfigInput,
    requestToken: string | undefined,
    defaultRetention: RetentionPolicy | undefined,
  ): Promise<Provisioned<StreamInfo>> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    if (requestToken !== undefined) assertValid(requestTokenProblem(requestToken), 'requestToken')
    assertStreamConfig(config)
    const creationKey = streamCreationKey(requestToken, config)
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      const existing = (await this.#catalog.stream(ref))?.value
      const decision = decideCreate(existing, creationKey)
      if (decision === 'exists') throw streamExists(ref)
      if (decision === 'noop') return { result: 'noop', info: streamInfo(existing!) }
      const document = this.#creator.newStream(basin.value, ref, config, creationKey, defaultRetention)
      await this.#creator.add(commit, document, basin)
      return { result: 'created', info: streamInfo(document) }
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
      const existing = await this.#catalog.stream(ref)
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
    const { config = {}, start, fencingToken = '', cipher } = restored
    if (start === undefined) throw invalid('`start` is required', 'start')
    assertValid(streamNameProblem(ref.stream), 'stream')
    assertStreamConfig(config)
    const tail: StreamPosition = { seqNum: start.seqNum, timestamp: millisecondsOf(start.timestamp) }
    assertInteger(tail.seqNum, 'start.seqNum')
    assertInteger(tail.timestamp, 'start.timestamp')
    assertValid(fencingTokenProblem(fencingToken), 'fencingToken')
    assertBasinConfig({ streamCipher: cipher })
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const basin = await this.#catalog.activeBasin(ref.basin)
      if ((await this.#catalog.stream(ref)) !== undefined) throw streamExists(ref)
      const stream = this.#creator.newStream(basin.value, ref, config, null, defaultRetention)
      const document = cipher === undefined ? stream : { ...stream, cipher }
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
    return (await this.#catalog.existingStream(ref)).value.config
  }

  /** Resolves to the id of the stream's log. Rejects with `stream_not_found`. */
  async logId(ref: StreamRef): Promise<string> {
    return (await this.#catalog.existingStream(ref)).value.logId
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
      const stream = await this.#catalog.existingStream(ref)
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

  /** Deletes the stream in one commit: afterwards its name is free and its open sessions have ended. */
  async delete(ref: StreamRef): Promise<void> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    await this.#catalog.existingBasin(ref.basin)
    await this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      await this.#changes.remove(commit, await this.#catalog.existingStream(ref))
    })
  }
}

function streamInfo(document: StreamDocument): StreamInfo {
  return {
    name: document.name,
    createdAt: new Date(document.createdAt),
    deletedAt: null,
    cipher: document.cipher,
  }
}

import { mergeStreamConfig } from '../../core/config.ts'
import type { RetentionPolicy, StreamConfigInput } from '../../model/config.ts'
import { assertStreamConfig } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import { type StreamRef, streamNameProblem } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, LogStart } from '../../storage/contract.ts'
import {
  type BasinDocument,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { assertNotDeleting, noStreamToAppendTo, permissionDenied, streamNotFound } from '../streams/errors.ts'
import type { CreationPolicy } from '../streams/target.ts'
import type { BasinCreator } from './basin-creator.ts'
import type { Catalog, Commit } from './catalog.ts'
import { emptyDeadline, expiryDeadline } from './deadlines.ts'
import type { UsageRecorder } from './usage.ts'

/** Creates streams: explicitly, and on first use. */
export class StreamCreator {
  readonly #catalog: Catalog
  readonly #basins: BasinCreator
  readonly #usage: UsageRecorder
  readonly #clock: Clock
  readonly #newId: () => string

  constructor(
    catalog: Catalog,
    basins: BasinCreator,
    usage: UsageRecorder,
    clock: Clock,
    newId: () => string,
  ) {
    this.#catalog = catalog
    this.#basins = basins
    this.#usage = usage
    this.#clock = clock
    this.#newId = newId
  }

  /** The document of a stream to be created in a basin. */
  newStream(
    { config: { defaultStreamConfig, streamCipher } }: BasinDocument,
    ref: StreamRef,
    config: StreamConfigInput,
    creationKey: string | null,
    defaultRetention: RetentionPolicy | undefined,
  ): StreamDocument {
    return {
      basin: ref.basin,
      name: ref.stream,
      logId: this.#newId(),
      createdAt: this.#clock.now(),
      config: mergeStreamConfig(config, defaultStreamConfig, defaultRetention),
      cipher: streamCipher,
      epoch: 1,
      creationKey,
    }
  }

  /**
   * Commits a new stream, provided that the basin has not changed: a basin that is being deleted gets no more
   * streams.
   */
  async add(
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    start?: LogStart,
  ): Promise<void> {
    const { logId, epoch, createdAt } = document
    const log: CatalogChange = { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) }
    await this.publish(commit, document, basin, [log])
  }

  /** Does the same with a log that these changes create or complete. */
  async publish(
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    changes: readonly CatalogChange[],
  ): Promise<void> {
    await commit([
      { kind: 'check', collection: 'basins', key: basin.value.name, expect: basin.version },
      putStream(document, null),
      ...changes,
      ...emptyDeadline(document, document.createdAt),
      ...expiryDeadline(document),
    ])
    this.#usage.basinActive(document.basin)
  }

  /**
   * Creates a stream that was used before it existed, and its basin, if the policy or the basin's
   * configuration allows it (docs/protocol.md "Automatic creation"). Resolves to undefined if the stream
   * exists by now. Rejects with `basin_not_found`, `stream_not_found` or `permission_denied`.
   */
  async createOnUse(
    ref: StreamRef,
    purpose: 'append' | 'read',
    policy: CreationPolicy,
  ): Promise<StreamDocument | undefined> {
    assertValid(streamNameProblem(ref.stream), 'stream')
    if (policy.config !== undefined) assertStreamConfig(policy.config)
    return this.#catalog.change(streamKey(ref.basin, ref.stream), async (commit, isRepeated) => {
      const basin = (await this.#catalog.basin(ref.basin)) ?? (await this.#newBasin(ref, policy))
      const { createStreamOnAppend, createStreamOnRead } = basin.value.config
      const isAllowed = policy.always || (purpose === 'append' ? createStreamOnAppend : createStreamOnRead)
      if (!isAllowed) throw purpose === 'append' ? noStreamToAppendTo(ref) : streamNotFound(ref)
      assertNotDeleting(basin.value)
      // The caller did not find the stream. If it exists by now, the commit conflicts.
      const mayExist = isRepeated || policy.isConfigDenied
      if (mayExist && (await this.#catalog.stream(ref)) !== undefined) return undefined
      if (policy.isConfigDenied) throw permissionDenied()
      const document = this.newStream(basin.value, ref, policy.config ?? {}, null, policy.defaultRetention)
      await this.add(commit, document, basin)
      return document
    })
  }

  async #newBasin(
    ref: StreamRef,
    { always, defaultRetention }: CreationPolicy,
  ): Promise<Versioned<BasinDocument>> {
    if (always) await this.#basins.createIfMissing(ref.basin, defaultRetention)
    return this.#catalog.existingBasin(ref.basin)
  }
}

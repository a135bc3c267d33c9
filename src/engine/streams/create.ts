import { mergeStreamConfig } from '../../core/config.ts'
import { type Expiry, firstCheckAt, streamExpiresAt } from '../../core/lifetime.ts'
import { assertStreamConfig, type RetentionPolicy, type StreamConfigInput } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import type { RestoredStream, StreamCreation } from '../../model/info.ts'
import { type StreamRef, streamNameProblem } from '../../model/names.ts'
import { millisecondsOf } from '../../model/validation.ts'
import type { CatalogChange, LogStart } from '../../storage/contract.ts'
import {
  type BasinDocument,
  putDeadline,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import type { EngineContext } from '../context.ts'
import { assertNotDeleting, noStreamToAppendTo, permissionDenied, streamNotFound } from '../errors.ts'
import type { Catalog, Commit } from './catalog.ts'

/** The policy for a data operation whose stream does not exist (docs/protocol.md "Automatic creation"). */
export interface CreationPolicy {
  /** Creates the stream, and its basin, whatever the basin's configuration says. */
  readonly always: boolean
  /** Rejects with `stream_not_found`, also while another call creates the stream. */
  readonly never?: boolean | undefined
  readonly config?: StreamConfigInput | undefined
  /** The retention of a basin or stream for which nothing else sets one. The protocol's by default. */
  readonly defaultRetention?: RetentionPolicy | undefined
  /** Rejects the creation with `permission_denied`: the caller may not choose the configuration it gave. */
  readonly isConfigDenied?: boolean | undefined
}

/** What a new stream is made of, besides its name and the defaults of its basin. */
interface NewStream extends Pick<RestoredStream, 'config' | 'cipher' | 'metadata' | 'expiry'> {
  /** The retention if nothing else sets one. */
  readonly defaultRetention: RetentionPolicy | undefined
  /** See `core/provision.ts`. */
  readonly creationKey?: string | null
}

export interface StreamCreatorContext extends EngineContext {
  readonly catalog: Catalog
}

/** Creates streams: explicitly, and on first use. */
export class StreamCreator {
  readonly #context: StreamCreatorContext

  constructor(context: StreamCreatorContext) {
    this.#context = context
  }

  newStream(
    { config: { defaultStreamConfig, streamCipher } }: BasinDocument,
    ref: StreamRef,
    { config = {}, defaultRetention, creationKey = null, cipher, metadata, expiry }: NewStream,
  ): StreamDocument {
    return {
      basin: ref.basin,
      name: ref.stream,
      logId: this.#context.newId(),
      createdAt: this.#context.clock.now(),
      config: mergeStreamConfig(config, defaultStreamConfig, defaultRetention),
      cipher: cipher === undefined ? streamCipher : cipher,
      epoch: 1,
      creationKey,
      metadata,
      expiry: expiry && storedExpiry(expiry),
    }
  }

  /**
   * Commits a new stream with its log, which these changes create or complete. Conflicts if the basin has
   * changed: a basin that is being deleted gets no more streams.
   */
  async add(
    commit: Commit,
    document: StreamDocument,
    basin: Versioned<BasinDocument>,
    changes: readonly CatalogChange[] = [createLog(document)],
  ): Promise<void> {
    await commit([
      { kind: 'check', collection: 'basins', key: basin.value.name, expect: basin.version },
      putStream(document, null),
      ...changes,
      ...firstDeadlines(document),
    ])
    this.#context.usage.basinActive(document.basin)
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
    const { catalog } = this.#context
    const { always, config = {}, defaultRetention, isConfigDenied } = policy
    assertValid(streamNameProblem(ref.stream), 'stream')
    assertStreamConfig(config)
    return catalog.change(streamKey(ref.basin, ref.stream), async (commit, isRepeated) => {
      const found = await catalog.basin(ref.basin)
      if (found === undefined && always) await catalog.createBasinIfMissing(ref.basin, defaultRetention)
      const basin = found ?? (await catalog.existingBasin(ref.basin))
      const { createStreamOnAppend, createStreamOnRead } = basin.value.config
      const isAllowed = always || (purpose === 'append' ? createStreamOnAppend : createStreamOnRead)
      if (!isAllowed) throw purpose === 'append' ? noStreamToAppendTo(ref) : streamNotFound(ref)
      assertNotDeleting(basin.value)
      // The caller did not find the stream. If it exists by now, the commit conflicts.
      const mayExist = isRepeated || isConfigDenied
      if (mayExist && (await catalog.stream(ref)) !== undefined) return undefined
      if (isConfigDenied) throw permissionDenied()
      const document = this.newStream(basin.value, ref, { config, defaultRetention })
      await this.add(commit, document, basin)
      return document
    })
  }
}

function storedExpiry(expiry: NonNullable<StreamCreation['expiry']>): Expiry {
  return 'at' in expiry ? { at: millisecondsOf(expiry.at) } : { idleSeconds: expiry.idleSeconds }
}

/** Creates the log of a new stream, which may begin at a position. */
export function createLog({ logId, epoch, createdAt }: StreamDocument, start?: LogStart): CatalogChange {
  return { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) }
}

/** Schedules the automatic deletion of a new stream. */
export function firstDeadlines(document: StreamDocument): CatalogChange[] {
  const { basin, name, logId, createdAt, expiry } = document
  const whenEmpty = emptyDeadline(document, createdAt)
  if (expiry === undefined) return whenEmpty
  const at = streamExpiresAt(expiry, { createdAt, appendedAt: createdAt })
  return [...whenEmpty, putDeadline(at, { basin, stream: name, logId, kind: 'expiry' })]
}

/** Schedules the first check of a stream with delete-on-empty. */
export function emptyDeadline(document: StreamDocument, now: number): CatalogChange[] {
  const { minAgeSeconds } = document.config.deleteOnEmpty
  if (minAgeSeconds === 0) return []
  const { basin, name, logId } = document
  return [putDeadline(firstCheckAt(minAgeSeconds, now), { basin, stream: name, logId, kind: 'empty' })]
}

import { mergeStreamConfig } from '../../core/config.ts'
import { assertStreamConfig, type RetentionPolicy, type StreamConfigInput } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import { type StreamRef, streamNameProblem } from '../../model/names.ts'
import type { CatalogChange, LogStart } from '../../storage/contract.ts'
import {
  type BasinDocument,
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

export interface StreamCreatorContext extends EngineContext {
  readonly catalog: Catalog
  /** Schedules the automatic deletion of a new stream. */
  readonly firstDeadlines: (document: StreamDocument) => readonly CatalogChange[]
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
    config: StreamConfigInput,
    creationKey: string | null,
    defaultRetention: RetentionPolicy | undefined,
  ): StreamDocument {
    return {
      basin: ref.basin,
      name: ref.stream,
      logId: this.#context.newId(),
      createdAt: this.#context.clock.now(),
      config: mergeStreamConfig(config, defaultStreamConfig, defaultRetention),
      cipher: streamCipher,
      epoch: 1,
      creationKey,
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
      ...this.#context.firstDeadlines(document),
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
      const document = this.newStream(basin.value, ref, config, null, defaultRetention)
      await this.add(commit, document, basin)
      return document
    })
  }
}

/** Creates the log of a new stream, which may begin at a position. */
export function createLog({ logId, epoch, createdAt }: StreamDocument, start?: LogStart): CatalogChange {
  return { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) }
}

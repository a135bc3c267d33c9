import { basinConfig, reconfiguredBasin, withDefaultRetention } from '../../core/config.ts'
import { basinCreationKey, decideCreate, decideEnsure, sameConfig } from '../../core/provision.ts'
import {
  assertBasinConfig,
  type BasinConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type RetentionPolicy,
} from '../../model/config.ts'
import { assertValid, HeadwaterError } from '../../model/errors.ts'
import { type BasinInfo, type ListQuery, LOCATION, type Page, type Provisioned } from '../../model/info.ts'
import { basinNameProblem, basinPrefixProblem, requestTokenProblem } from '../../model/names.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import {
  type BasinDocument,
  listDocuments,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { EngineContext } from '../context.ts'
import { assertNotDeleting, closedError, conflictError } from '../errors.ts'
import { type Catalog, CONFLICTS_MAX, putBasin } from '../streams/catalog.ts'
import type { ChangeCheck, StreamService } from './stream-service.ts'

export interface BasinServiceContext extends EngineContext {
  readonly catalog: Catalog
  readonly streams: StreamService
}

/** How many streams of a basin are deleted together. */
const STREAMS_DELETED = 100

/** Basins and their configuration (docs/protocol.md "Basins and streams"). */
export class BasinService {
  readonly #context: BasinServiceContext

  constructor(context: BasinServiceContext) {
    this.#context = context
  }

  async create(
    name: string,
    config: BasinConfigInput,
    requestToken: string | undefined,
    defaultRetention: RetentionPolicy | undefined,
  ): Promise<Provisioned<BasinInfo>> {
    const { catalog } = this.#context
    assertValid(basinNameProblem(name), 'basin')
    if (requestToken !== undefined) assertValid(requestTokenProblem(requestToken), 'requestToken')
    this.#checkConfig(config)
    const creationKey = basinCreationKey(requestToken, config)
    return catalog.change(name, async (commit) => {
      const existing = (await catalog.basin(name))?.value
      if (existing !== undefined) assertNotDeleting(existing)
      const decision = decideCreate(existing, creationKey)
      if (decision === 'exists') {
        throw new HeadwaterError('resource_already_exists', `basin \`${name}\` already exists`)
      }
      if (decision === 'noop') return { result: 'noop', info: basinInfo(existing!) }
      const desired = withDefaultRetention(basinConfig(config), defaultRetention)
      const document = this.#newBasin(name, desired, creationKey)
      await commit([putBasin(document, null)])
      return { result: 'created', info: basinInfo(document) }
    })
  }

  async ensure(
    name: string,
    config: BasinConfigInput,
    defaultRetention: RetentionPolicy | undefined,
    check: ChangeCheck,
  ): Promise<Provisioned<BasinInfo>> {
    const { catalog } = this.#context
    assertValid(basinNameProblem(name), 'basin')
    this.#checkConfig(config)
    return catalog.change(name, async (commit) => {
      const existing = await catalog.basin(name)
      const document = existing?.value
      const desired = withDefaultRetention(basinConfig(config), defaultRetention, document?.config)
      if (document !== undefined) assertNotDeleting(document)
      const decision = decideEnsure(document, desired)
      if (decision !== 'noop') check(decision)
      if (decision === 'noop') return { result: 'noop', info: basinInfo(document!) }
      const next =
        decision === 'update' ? { ...document!, config: desired } : this.#newBasin(name, desired, null)
      await commit([putBasin(next, existing?.version ?? null)])
      return { result: decision === 'update' ? 'updated' : 'created', info: basinInfo(next) }
    })
  }

  async list(query: ListQuery): Promise<Page<BasinInfo>> {
    const { prefix = '', startAfter = '' } = query
    assertValid(basinPrefixProblem(prefix, 'prefix'), 'prefix')
    assertValid(basinPrefixProblem(startAfter, 'start-after'), 'startAfter')
    return this.#context.catalog.page('basins', query, basinInfo)
  }

  async config(name: string): Promise<BasinConfig> {
    return (await this.#context.catalog.existingBasin(name)).value.config
  }

  async reconfigure(
    name: string,
    change: BasinReconfiguration,
    defaultRetention: RetentionPolicy | undefined,
  ): Promise<BasinConfig> {
    const { catalog } = this.#context
    this.#checkConfig(change)
    return catalog.change(name, async (commit) => {
      const { value, version } = await catalog.activeBasin(name)
      const changed = reconfiguredBasin(value.config, change)
      const config = withDefaultRetention(changed, defaultRetention, value.config)
      if (!sameConfig(config, value.config)) await commit([putBasin({ ...value, config }, version)])
      return config
    })
  }

  /**
   * Marks the basin as deleting, so that it gets no more streams, and deletes them, so that no engine
   * acknowledges appends to them any more. Then removes it; background work tries again if that fails.
   */
  async delete(name: string): Promise<void> {
    const { catalog, clock } = this.#context
    await catalog.change(name, async (commit) => {
      const { value, version } = await catalog.existingBasin(name)
      if (value.deletedAt !== null) return
      await commit([putBasin({ ...value, deletedAt: clock.now() }, version)])
    })
    const basin = await catalog.basin(name)
    if (basin === undefined || basin.value.deletedAt === null) return
    await this.#deleteStreams(basin)
    await this.#remove(basin).catch(() => {})
  }

  /** Completes the deletion of basins. Part of the background work. */
  async finishDeletions(): Promise<void> {
    await this.#context.catalog.forEach('basins', '', async (basin) => {
      if (basin.value.deletedAt === null) return
      // If some could not be deleted, the next run tries again.
      await this.#deleteStreams(basin)
      await this.#remove(basin)
    })
  }

  /** Removes a basin without streams that is being deleted. */
  async #remove({ key, version }: Versioned<BasinDocument>): Promise<void> {
    const { session, usage } = this.#context
    await session.commit([{ kind: 'delete', collection: 'basins', key, expect: version }])
    usage.basinDeleted(key)
  }

  /**
   * Deletes the streams of a basin that gets no more of them. Once it resolves, no engine acknowledges
   * appends to them. Rejects if one cannot be deleted. Another call may have removed the basin: those of one
   * that was created since are left.
   */
  async #deleteStreams({ key, version }: Versioned<BasinDocument>): Promise<void> {
    const { session, catalog, streams: service, closing } = this.#context
    const range = { prefix: streamKey(key, ''), after: '', limit: STREAMS_DELETED }
    const isSame: CatalogChange = { kind: 'check', collection: 'basins', key, expect: version }
    for (let attempts = 0; attempts < CONFLICTS_MAX; attempts++) {
      const streams = await listDocuments(session, 'streams', range)
      if (streams.length === 0 || (await catalog.basin(key))?.version !== version) return
      if (closing.aborted) throw closedError()
      const commit = (removal: readonly CatalogChange[]) => session.commit([isSame, ...removal])
      const remove = async (stream: Versioned<StreamDocument>) => {
        try {
          await service.removeWithBasin(commit, stream)
          attempts = -1
        } catch (error) {
          // The list shows whether it is left.
          if (!StorageConflict.is(error)) throw error
        }
      }
      const removals = await Promise.allSettled(streams.map(remove))
      for (const removal of removals) if (removal.status === 'rejected') throw removal.reason
      await macrotask()
    }
    throw conflictError()
  }

  #newBasin(name: string, config: BasinConfig, creationKey: string | null): BasinDocument {
    return { name, createdAt: this.#context.clock.now(), deletedAt: null, config, creationKey }
  }

  #checkConfig(config: BasinConfigInput | BasinReconfiguration): void {
    assertBasinConfig(config)
    if (config.streamCipher != null) this.#context.ciphers.check(config.streamCipher)
  }
}

function basinInfo(document: BasinDocument): BasinInfo {
  return {
    name: document.name,
    location: LOCATION.name,
    state: document.deletedAt === null ? 'active' : 'deleting',
    createdAt: new Date(document.createdAt),
    deletedAt: document.deletedAt === null ? null : new Date(document.deletedAt),
  }
}

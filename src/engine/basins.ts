import { basinConfig, reconfigureBasin } from '../core/basin-config.ts'
import { listLimit, pageOf } from '../core/listing.ts'
import { basinCreationKey, decideCreate, decideEnsure, sameConfig } from '../core/provision.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration, Cipher } from '../model/config.ts'
import { checkBasinConfig } from '../model/config-validation.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../model/info.ts'
import { basinNameProblem, basinPrefixProblem, refuse, requestTokenProblem } from '../model/names.ts'
import type { Versioned } from './catalog.ts'
import type { EngineContext } from './context.ts'
import { asJson, type BasinDocument, basinInfo } from './documents.ts'
import { storageError } from './errors.ts'
import type { Locations } from './locations.ts'
import type { BasinService, ChangeCheck } from './services.ts'

export interface CreateBasinOptions {
  /** Makes a repeated creation with the same configuration a `noop` instead of an error; at most 36 bytes. */
  readonly requestToken?: string | undefined
  /** `aws:us-east-1`, the only one. */
  readonly scope?: string | undefined
  readonly location?: string | null | undefined
}

/** The basins of an engine (wire-behaviour.md 8). */
export class Basins implements BasinService {
  readonly #engine: EngineContext
  readonly #locations: Locations

  constructor(engine: EngineContext, locations: Locations) {
    this.#engine = engine
    this.#locations = locations
  }

  async create(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
  ): Promise<Provisioned<BasinInfo>> {
    refuse(basinNameProblem(name), 'basin')
    if (options.requestToken !== undefined) refuse(requestTokenProblem(options.requestToken), 'request_token')
    this.#checkConfig(config, options)
    const creationKey = basinCreationKey(options.requestToken, config)
    return this.#engine.catalog.change(name, async (commit) => {
      const existing = (await this.#engine.catalog.basin(name))?.value
      const decision = decideCreate(
        existing && { deleting: existing.deletedAt !== null, creationKey: existing.creationKey },
        creationKey,
      )
      if (decision === 'deleting') throw basinDeletionPending(name)
      if (decision === 'exists') {
        throw new HeadwaterError('resource_already_exists', `basin \`${name}\` already exists`)
      }
      if (decision === 'noop') return { result: 'noop', info: basinInfo(existing!) }
      const document = await this.#newDocument(name, config, options, creationKey)
      await commit([put(document, null)])
      return { result: 'created', info: basinInfo(document) }
    })
  }

  async ensure(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
    check?: ChangeCheck,
  ): Promise<Provisioned<BasinInfo>> {
    refuse(basinNameProblem(name), 'basin')
    this.#checkConfig(config, options)
    const desired = basinConfig(config)
    return this.#engine.catalog.change(name, async (commit) => {
      const existing = await this.#engine.catalog.basin(name)
      const document = existing?.value
      const decision = decideEnsure(
        document && { deleting: document.deletedAt !== null, config: document.config },
        desired,
      )
      if (decision !== 'deleting' && decision !== 'noop') check?.(decision)
      if (decision === 'deleting') throw basinDeletionPending(name)
      if (document !== undefined) checkPlace(document, options)
      if (decision === 'noop') return { result: 'noop', info: basinInfo(document!) }
      const next =
        decision === 'update'
          ? { ...document!, config: desired }
          : await this.#newDocument(name, config, options, null)
      await commit([put(next, existing?.version ?? null)])
      return { result: decision === 'update' ? 'updated' : 'created', info: basinInfo(next) }
    })
  }

  async list(query: ListQuery): Promise<Page<BasinInfo>> {
    const { prefix = '', startAfter = '' } = query
    refuse(basinPrefixProblem(prefix, 'prefix'), 'prefix')
    refuse(basinPrefixProblem(startAfter, 'start-after'), 'start_after')
    const limit = listLimit(query.limit)
    const range = { prefix, after: startAfter, limit: limit + 1 }
    const documents = await storageError(this.#engine.session.list('basins', range))
    return pageOf(documents, limit, ({ value }) => basinInfo(value as unknown as BasinDocument))
  }

  async config(name: string): Promise<BasinConfig> {
    return (await this.existing(name)).value.config
  }

  async reconfigure(name: string, change: BasinReconfiguration): Promise<BasinConfig> {
    checkBasinConfig(change)
    this.#checkCipher(change.streamCipher)
    return this.#engine.catalog.change(name, async (commit) => {
      const { value, version } = await this.active(name)
      const config = reconfigureBasin(value.config, change)
      if (!sameConfig(config, value.config)) await commit([put({ ...value, config }, version)])
      return config
    })
  }

  /** Marks the basin; its streams and then the basin itself go in the background. */
  async delete(name: string): Promise<void> {
    await this.#engine.catalog.change(name, async (commit) => {
      const { value, version } = await this.existing(name)
      if (value.deletedAt !== null) return
      await commit([put({ ...value, deletedAt: this.#engine.settings.clock.now() }, version)])
    })
    this.#engine.background.runSoon()
  }

  /** The basin, or 404 `basin_not_found`. */
  async existing(name: string): Promise<Versioned<BasinDocument>> {
    refuse(basinNameProblem(name), 'basin')
    const basin = await this.#engine.catalog.basin(name)
    if (basin === undefined) throw new HeadwaterError('basin_not_found', `basin \`${name}\` not found`)
    return basin
  }

  /** The basin, or 404 `basin_not_found`, or 409 `basin_deletion_pending`. */
  async active(name: string): Promise<Versioned<BasinDocument>> {
    const basin = await this.existing(name)
    if (basin.value.deletedAt !== null) throw basinDeletionPending(name)
    return basin
  }

  #checkConfig(config: BasinConfigInput, options: CreateBasinOptions): void {
    checkBasinConfig(config)
    this.#checkCipher(config.streamCipher)
    const names = this.#engine.settings.locations.map(({ name }) => name)
    if (options.scope !== undefined && !names.includes(options.scope)) {
      throw invalid(`scope must be one of ${names.join(', ')}`, 'scope')
    }
    if (options.location != null && !names.includes(options.location)) {
      throw invalid(`location must be one of ${names.join(', ')}`, 'location')
    }
    if (options.scope !== undefined && options.location != null && options.scope !== options.location) {
      throw invalid('scope and location must not differ', 'location')
    }
  }

  #checkCipher(cipher: Cipher | null | undefined): void {
    if (cipher != null) this.#engine.settings.ciphers.check(cipher)
  }

  async #newDocument(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
    creationKey: string | null,
  ): Promise<BasinDocument> {
    const { clock } = this.#engine.settings
    const place = options.scope ?? options.location ?? (await this.#locations.default()).name
    return {
      name,
      scope: place,
      location: options.location ?? null,
      createdAt: clock.now(),
      deletedAt: null,
      config: basinConfig(config),
      creationKey,
    }
  }
}

function put(document: BasinDocument, expect: number | null) {
  return {
    kind: 'put',
    collection: 'basins',
    key: document.name,
    value: asJson(document),
    expect,
  } as const
}

/** A basin stays where it is (rulings.md "Basins"). */
function checkPlace(existing: BasinDocument, options: CreateBasinOptions): void {
  if (options.scope !== undefined && options.scope !== existing.scope) {
    throw invalid(`scope of a basin can't be changed; it is ${existing.scope}`, 'scope')
  }
  if (options.location != null && options.location !== (existing.location ?? existing.scope)) {
    throw invalid(`location of a basin can't be changed; it is ${existing.scope}`, 'location')
  }
}

function basinDeletionPending(name: string): HeadwaterError {
  return new HeadwaterError('basin_deletion_pending', `basin \`${name}\` is being deleted`)
}

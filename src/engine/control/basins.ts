import { basinConfig, reconfigureBasin } from '../../core/basin-config.ts'
import { listLimit, pageOf } from '../../core/listing.ts'
import { basinCreationKey, decideCreate, decideEnsure, sameConfig } from '../../core/provision.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration, Cipher } from '../../model/config.ts'
import { checkBasinConfig } from '../../model/config-validation.ts'
import { HeadwaterError, invalid, refuse } from '../../model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../../model/info.ts'
import { basinNameProblem, basinPrefixProblem, requestTokenProblem } from '../../model/names.ts'
import type { EngineContext } from '../context.ts'
import type { BasinDocument } from '../documents.ts'
import { checkCipher } from '../encryption/check-cipher.ts'
import { storageError } from '../errors.ts'
import { basinDeletionPending } from '../existence-errors.ts'
import { activeBasin, existingBasin } from '../find-basin.ts'
import { newBasin, type Place, putBasin } from '../new-basin.ts'
import type { BasinService, ChangeCheck } from '../services.ts'
import { basinInfo } from './infos.ts'

export interface CreateBasinOptions extends Place {
  /** Makes a repeated creation with the same configuration a `noop` instead of an error; at most 36 bytes. */
  readonly requestToken?: string | undefined
}

/** The basins of an engine (wire-behaviour.md 8). */
export class Basins implements BasinService {
  readonly #engine: EngineContext

  constructor(engine: EngineContext) {
    this.#engine = engine
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
      const document = await newBasin(this.#engine, name, basinConfig(config), options, creationKey)
      await commit([putBasin(document, null)])
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
          : await newBasin(this.#engine, name, desired, options)
      await commit([putBasin(next, existing?.version ?? null)])
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
    return (await existingBasin(this.#engine, name)).value.config
  }

  async reconfigure(name: string, change: BasinReconfiguration): Promise<BasinConfig> {
    checkBasinConfig(change)
    this.#checkCipher(change.streamCipher)
    return this.#engine.catalog.change(name, async (commit) => {
      const { value, version } = await activeBasin(this.#engine, name)
      const config = reconfigureBasin(value.config, change)
      if (!sameConfig(config, value.config)) await commit([putBasin({ ...value, config }, version)])
      return config
    })
  }

  /** Marks the basin; its streams and then the basin itself go in the background. */
  async delete(name: string): Promise<void> {
    await this.#engine.catalog.change(name, async (commit) => {
      const { value, version } = await existingBasin(this.#engine, name)
      if (value.deletedAt !== null) return
      await commit([putBasin({ ...value, deletedAt: this.#engine.settings.clock.now() }, version)])
    })
    this.#engine.rest.tell(({ background }) => background.finishDeletionsSoon())
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
    if (cipher != null) checkCipher(cipher, this.#engine.settings.ciphers.given)
  }
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

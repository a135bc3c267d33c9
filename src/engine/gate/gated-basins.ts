import { permits } from '../../core/permission.ts'
import { EMPTY_PAGE, scopedQuery, withinSet } from '../../core/scoped-list.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../../model/config.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../../model/info.ts'
import type { CreateBasinOptions } from '../control/basins.ts'
import { permissionDenied } from '../errors.ts'
import type { BasinService } from '../services.ts'
import type { Gate } from './gate.ts'

/** Basins, as a caller may use them. */
export class GatedBasins implements BasinService {
  readonly #gate: Gate
  readonly #basins: BasinService

  constructor(gate: Gate, basins: BasinService) {
    this.#gate = gate
    this.#basins = basins
  }

  create(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
  ): Promise<Provisioned<BasinInfo>> {
    return this.#gate.run('create-basin', { basin: name }, () => this.#basins.create(name, config, options))
  }

  /** Creating and changing are permitted each by themselves; one of them has to be (rulings.md "Tokens"). */
  async ensure(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
  ): Promise<Provisioned<BasinInfo>> {
    const { grant } = await this.#gate.permit(['create-basin', 'reconfigure-basin'], { basin: name })
    return this.#basins.ensure(name, config, options, (change) => {
      const operation = change === 'create' ? 'create-basin' : 'reconfigure-basin'
      if (!permits(grant, operation, { basin: name })) throw permissionDenied()
    })
  }

  list(query: ListQuery): Promise<Page<BasinInfo>> {
    return this.#gate.run('list-basins', {}, async ({ scope }) => {
      const scoped = scopedQuery(scope.basins, query)
      if (scoped === undefined) return EMPTY_PAGE
      return withinSet(scope.basins, await this.#basins.list(scoped), ({ name }) => name)
    })
  }

  config(name: string): Promise<BasinConfig> {
    return this.#gate.run('get-basin-config', { basin: name }, () => this.#basins.config(name))
  }

  reconfigure(name: string, change: BasinReconfiguration): Promise<BasinConfig> {
    return this.#gate.run('reconfigure-basin', { basin: name }, () => this.#basins.reconfigure(name, change))
  }

  delete(name: string): Promise<void> {
    return this.#gate.run('delete-basin', { basin: name }, () => this.#basins.delete(name))
  }
}

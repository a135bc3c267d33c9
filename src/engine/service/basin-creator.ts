import { basinConfig, withDefaultRetention } from '../../core/config.ts'
import type { BasinConfig, RetentionPolicy } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import { basinNameProblem } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import { type BasinDocument, putDocument } from '../../storage/documents.ts'
import type { Catalog } from './catalog.ts'

/** Creates basins: explicitly, and on first use. */
export class BasinCreator {
  readonly #catalog: Catalog
  readonly #clock: Clock

  constructor(catalog: Catalog, clock: Clock) {
    this.#catalog = catalog
    this.#clock = clock
  }

  /** Creates the basin with the default configuration unless it exists. */
  async createIfMissing(name: string, defaultRetention: RetentionPolicy | undefined): Promise<void> {
    assertValid(basinNameProblem(name), 'basin')
    if ((await this.#catalog.basin(name)) !== undefined) return
    await this.#catalog.change(name, async (commit) => {
      if ((await this.#catalog.basin(name)) !== undefined) return
      const config = withDefaultRetention(basinConfig({}), defaultRetention)
      await commit([putBasin(this.newBasin(name, config, null), null)])
    })
  }

  /** The document of a basin to be created. */
  newBasin(name: string, config: BasinConfig, creationKey: string | null): BasinDocument {
    return { name, createdAt: this.#clock.now(), deletedAt: null, config, creationKey }
  }
}

export function putBasin(document: BasinDocument, expect: number | null): CatalogChange {
  return putDocument('basins', document.name, document, expect)
}

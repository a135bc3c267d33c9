import { basinConfig, withDefaultRetention } from '../../core/config.ts'
import type { BasinConfig, RetentionPolicy } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import type { LocationInfo } from '../../model/info.ts'
import { basinNameProblem } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import { type BasinDocument, getDocument, putDocument } from '../../storage/documents.ts'
import type { Catalog } from './catalog.ts'

/** The location of a new basin; the default location if neither is given. */
export interface BasinPlacement {
  /** A location of the engine, `aws:us-east-1` unless it was opened with others. */
  readonly scope?: string | undefined
  /** The name of `scope` in newer clients. The two must not differ. */
  readonly location?: string | null | undefined
}

/** Creates basins: explicitly, and on first use. */
export class BasinCreator {
  readonly #catalog: Catalog
  readonly #defaultLocation: () => Promise<LocationInfo>
  readonly #clock: Clock

  constructor(catalog: Catalog, defaultLocation: () => Promise<LocationInfo>, clock: Clock) {
    this.#catalog = catalog
    this.#defaultLocation = defaultLocation
    this.#clock = clock
  }

  /** Creates the basin with the default configuration unless it exists. */
  async createIfMissing(name: string, defaultRetention: RetentionPolicy | undefined): Promise<void> {
    assertValid(basinNameProblem(name), 'basin')
    if ((await this.#catalog.basin(name)) !== undefined) return
    await this.#catalog.change(name, async (commit) => {
      if ((await this.#catalog.basin(name)) !== undefined) return
      const config = withDefaultRetention(basinConfig({}), defaultRetention)
      await commit([putBasin(await this.newBasin(name, config, {}, null), null)])
    })
  }

  /** The document of a basin to be created. */
  async newBasin(
    name: string,
    config: BasinConfig,
    { scope, location }: BasinPlacement,
    creationKey: string | null,
  ): Promise<BasinDocument> {
    return {
      name,
      scope: scope ?? location ?? (await this.#defaultLocation()).name,
      location: location ?? null,
      createdAt: this.#clock.now(),
      deletedAt: null,
      config,
      creationKey,
    }
  }
}

export function putBasin(document: BasinDocument, expect: number | null): CatalogChange {
  return putDocument('basins', document.name, document, expect)
}

/**
 * Resolves to the chosen default, or to the first location when none was chosen or the chosen one no longer
 * exists.
 */
export async function defaultLocation(
  session: StorageSession,
  locations: readonly LocationInfo[],
): Promise<LocationInfo> {
  const chosen = (await getDocument(session, 'settings', 'default-location'))?.value.name
  return { ...(locations.find(({ name }) => name === chosen) ?? locations[0]!) }
}

import { assertValid, invalid } from '../../model/errors.ts'
import type { LocationInfo } from '../../model/info.ts'
import { locationNameProblem } from '../../model/names.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { putDocument } from '../../storage/documents.ts'
import { defaultLocation } from './basin-creator.ts'
import type { Catalog } from './catalog.ts'

/** The locations of basins, and the default for basins created without one (docs/protocol.md "Locations"). */
export class LocationService {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #locations: readonly LocationInfo[]

  constructor(session: StorageSession, catalog: Catalog, locations: readonly LocationInfo[]) {
    this.#session = session
    this.#catalog = catalog
    this.#locations = locations
  }

  get names(): readonly string[] {
    return this.#locations.map(({ name }) => name)
  }

  async list(): Promise<readonly LocationInfo[]> {
    return this.#locations.map((location) => ({ ...location }))
  }

  default(): Promise<LocationInfo> {
    return defaultLocation(this.#session, this.#locations)
  }

  /** Rejects with `invalid` for an unknown location. */
  async setDefault(name: string): Promise<LocationInfo> {
    assertValid(locationNameProblem(name), 'location')
    const location = this.#locations.find((one) => one.name === name)
    if (location === undefined) {
      throw invalid(`unknown location \`${name}\`; expected one of ${this.names.join(', ')}`, 'location')
    }
    await this.#catalog.change('default-location', (commit) =>
      commit([putDocument('settings', 'default-location', { name })]),
    )
    return { ...location }
  }
}

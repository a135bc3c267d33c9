import { invalid, refuse } from '../../model/errors.ts'
import type { LocationInfo } from '../../model/info.ts'
import { locationNameProblem } from '../../model/location-name.ts'
import type { EngineContext } from '../context.ts'
import { DEFAULT_LOCATION_KEY, defaultLocation } from '../default-location.ts'
import type { LocationService } from '../services.ts'

/** The places where basins can be, and which of them those get that ask for none (rulings.md "Locations"). */
export class Locations implements LocationService {
  readonly #engine: EngineContext

  constructor(engine: EngineContext) {
    this.#engine = engine
  }

  async list(): Promise<readonly LocationInfo[]> {
    return this.#engine.settings.locations.map((location) => ({ ...location }))
  }

  default(): Promise<LocationInfo> {
    return defaultLocation(this.#engine)
  }

  /** Throws 422 `invalid` for a location that there is not. */
  async setDefault(name: string): Promise<LocationInfo> {
    refuse(locationNameProblem(name), 'location')
    const location = this.#engine.settings.locations.find((one) => one.name === name)
    if (location === undefined) throw invalid(`there is no location ${name}`, 'location')
    await this.#engine.catalog.change(DEFAULT_LOCATION_KEY, (commit) =>
      commit([{ kind: 'put', collection: 'settings', key: DEFAULT_LOCATION_KEY, value: { name } }]),
    )
    return { ...location }
  }
}

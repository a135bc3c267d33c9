import { invalid } from '../model/errors.ts'
import type { LocationInfo } from '../model/info.ts'
import { locationNameProblem, refuse } from '../model/names.ts'
import type { EngineContext } from './context.ts'
import { storageError } from './errors.ts'
import type { LocationService } from './services.ts'

const DEFAULT_LOCATION_KEY = 'default-location'

/** Collection `settings`, key `default-location`. Persisted. */
interface DefaultLocationDocument {
  readonly name: string
}

/** The places where basins can be, and which of them those get that ask for none (rulings.md "Locations"). */
export class Locations implements LocationService {
  readonly #engine: EngineContext

  constructor(engine: EngineContext) {
    this.#engine = engine
  }

  async list(): Promise<readonly LocationInfo[]> {
    return this.#engine.settings.locations.map((location) => ({ ...location }))
  }

  /** The one that was chosen, or the first; the first also when the chosen one is gone. */
  async default(): Promise<LocationInfo> {
    const { locations } = this.#engine.settings
    const document = await storageError(this.#engine.session.get('settings', DEFAULT_LOCATION_KEY))
    const chosen = (document?.value as unknown as DefaultLocationDocument | undefined)?.name
    return { ...(locations.find(({ name }) => name === chosen) ?? locations[0]!) }
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

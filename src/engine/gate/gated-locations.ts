import type { LocationInfo } from '../../model/info.ts'
import type { LocationService } from '../services.ts'
import type { Gate } from './gate.ts'

/** Locations, as a caller may see and choose them. */
export class GatedLocations implements LocationService {
  readonly #gate: Gate
  readonly #locations: LocationService

  constructor(gate: Gate, locations: LocationService) {
    this.#gate = gate
    this.#locations = locations
  }

  list(): Promise<readonly LocationInfo[]> {
    return this.#gate.run('list-locations', {}, () => this.#locations.list())
  }

  default(): Promise<LocationInfo> {
    return this.#gate.run('get-default-location', {}, () => this.#locations.default())
  }

  setDefault(name: string): Promise<LocationInfo> {
    return this.#gate.run('set-default-location', {}, () => this.#locations.setDefault(name))
  }
}

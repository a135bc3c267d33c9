import type { LocationInfo } from '../model/info.ts'
import { locationNameProblem } from '../model/location-name.ts'
import { type Decoder, keptStringOf } from './json-members.ts'
import { readJson } from './json-reader.ts'
import { badJson } from './json-values.ts'

/** A location by name (wire-behaviour.md 1.8). Throws 400 `bad_json`. */
export const locationOf: Decoder<string> = (value, name) => {
  const location = keptStringOf(value, name)
  const problem = locationNameProblem(location)
  if (problem !== undefined) throw badJson(problem, name)
  return location
}

/** PUT of the default location: the name as a bare string. Throws 400 `bad_json`. */
export function decodeLocation(body: Uint8Array): string {
  return locationOf(readJson(body), 'body')
}

export function locationJson(location: LocationInfo): string {
  return JSON.stringify(locationForm(location))
}

/** A bare array. */
export function locationsJson(locations: readonly LocationInfo[]): string {
  return JSON.stringify(locations.map(locationForm))
}

function locationForm({ name, isPrivate }: LocationInfo): object {
  return { name, is_private: isPrivate }
}

import type { LocationInfo } from '../model/info.ts'
import type { EngineContext } from './context.ts'
import { storageError } from './errors.ts'

/** Collection `settings`. Persisted. */
export const DEFAULT_LOCATION_KEY = 'default-location'

/** Under {@link DEFAULT_LOCATION_KEY}. Persisted. */
interface DefaultLocationDocument {
  readonly name: string
}

/**
 * Where basins come to be that ask for no place (rulings.md "Locations"): the one that was chosen, or the first; the first also when the chosen
 * one is gone.
 */
export async function defaultLocation({ session, settings }: EngineContext): Promise<LocationInfo> {
  const { locations } = settings
  const document = await storageError(session.get('settings', DEFAULT_LOCATION_KEY))
  const chosen = (document?.value as unknown as DefaultLocationDocument | undefined)?.name
  return { ...(locations.find(({ name }) => name === chosen) ?? locations[0]!) }
}

import type { LocationInfo } from '../../model/info.ts'
import type { StorageSession } from '../../storage/contract.ts'

/** Key in the collection `settings`. Persisted. */
export const DEFAULT_LOCATION_KEY = 'default-location'

/** Under {@link DEFAULT_LOCATION_KEY}. Persisted. */
interface DefaultLocationDocument {
  readonly name: string
}

/**
 * Resolves to the chosen default, or to the first location when none was chosen or the chosen one no longer
 * exists.
 */
export async function defaultLocation(
  session: StorageSession,
  locations: readonly LocationInfo[],
): Promise<LocationInfo> {
  const document = await session.get('settings', DEFAULT_LOCATION_KEY)
  const chosen = (document?.value as unknown as DefaultLocationDocument | undefined)?.name
  return { ...(locations.find(({ name }) => name === chosen) ?? locations[0]!) }
}

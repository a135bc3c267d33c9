import { HeadwaterError } from '../../src/model/errors.ts'
import { trackExternalWork } from '../../src/runtime/clock.ts'

/** Loads the code of access tokens and usage metrics. Rejects with `unavailable`. */
export const loadAccount = () => loaded('access tokens and metrics', import('./account.ts'))

/** Loads the code that creates, lists and configures basins and streams. Rejects with `unavailable`. */
export const loadControl = () => loaded('basins and configurations', import('./control.ts'))

/** Loads the code of Server-Sent Events. Rejects with `unavailable`. */
export const loadEvents = () => loaded('Server-Sent Events', import('./event-stream.ts'))

/** Loads the code of encryption keys. Rejects with `unavailable`. */
export const loadKeyHeader = () => loaded('encryption keys', import('./key-header.ts'))

/** Resolves to a module. Rejects with `unavailable`, which names its subject. */
export async function loaded<Module>(subject: string, loading: Promise<Module>): Promise<Module> {
  try {
    return await trackExternalWork(loading)
  } catch (cause) {
    const message = `the code of ${subject} could not be loaded`
    throw new HeadwaterError('unavailable', message, { mayHaveEffects: false, cause })
  }
}

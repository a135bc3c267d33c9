import { HeadwaterError } from '../../src/model/errors.ts'
import { trackExternalWork } from '../../src/runtime/clock.ts'

/** Loads the code of access tokens and usage metrics. Rejects with `unavailable`. */
export async function loadAccount(): Promise<typeof import('./account.ts')> {
  try {
    return await trackExternalWork(import('./account.ts'))
  } catch (cause) {
    const message = 'the code of access tokens and metrics could not be loaded'
    throw new HeadwaterError('unavailable', message, { mayHaveEffects: false, cause })
  }
}

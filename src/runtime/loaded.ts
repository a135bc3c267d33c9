import { HeadwaterError } from '../model/errors.ts'
import { trackExternalWork } from './clock.ts'

/** Resolves to a module, or to what it provides. Rejects with `unavailable`, which names its subject. */
export async function loaded<Module>(subject: string, loading: Promise<Module>): Promise<Module> {
  try {
    return await trackExternalWork(loading)
  } catch (cause) {
    const message = `${subject} could not be loaded`
    throw new HeadwaterError('unavailable', message, { mayHaveEffects: false, cause })
  }
}

import { onAbort } from '../runtime/abort.ts'
import { Caller } from './access/caller.ts'
import { Engine } from './api/engine.ts'
import { openServices } from './api/engine-services.ts'
import { engineSettings, type OpenOptions } from './options.ts'

/**
 * Opens an engine on a storage.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const chat = hw.basin('my-app').stream('chats/42')
 * await chat.append('hello')
 * ```
 *
 * Errors: `storage` when the storage cannot be opened; `invalid` for invalid options.
 */
export async function open(options: OpenOptions): Promise<Engine> {
  const settings = engineSettings(options)
  const { signal } = options
  const services = await openServices(settings, signal)
  if (signal !== undefined) {
    const ignore = onAbort(signal, () => services.close().catch(settings.onBackgroundError))
    onAbort(services.closing, ignore)
  }
  return new Engine(services, Caller.owner(services))
}

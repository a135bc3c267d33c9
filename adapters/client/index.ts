/**
 * The client: the interface of the engine, over HTTP.
 *
 * @packageDocumentation
 */

import type { Headwater } from '../../src/api/headwater.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { ClientCore } from './core.ts'
import { type ConnectOptions, settingsOf } from './options.ts'
import { RemoteHeadwater } from './remote.ts'

export type { Headwater } from '../../src/api/headwater.ts'
export { type ErrorCode, HeadwaterError } from '../../src/model/errors.ts'
export type { ClientLimits, ConnectOptions } from './options.ts'

/**
 * Creates a client of a server, with the interface of `open`. Requests are sent only when it is used, so it
 * resolves although the server is not reachable.
 *
 * ```ts
 * const remote = await connect({ url: 'http://localhost', fetch: createHandler(hw, { auth: 'none' }) })
 * await remote.basin('my-app').stream('chats/42').append('hello')
 * ```
 *
 * Errors: `invalid` for invalid options.
 */
export async function connect(options: ConnectOptions): Promise<Headwater> {
  const settings = settingsOf(options)
  const { signal } = options
  signal?.throwIfAborted()
  const core = new ClientCore(settings)
  if (signal !== undefined)
    onAbort(
      core.closing,
      onAbort(signal, () => void core.close()),
    )
  return new RemoteHeadwater(core)
}

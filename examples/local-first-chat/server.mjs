import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

const BASIN = 'chat'

/** Opens the server of the chat: an engine on a directory that speaks the wire protocol. */
export async function openServer(directory) {
  const hw = await open({ storage: filesystem(directory) })
  await hw.ensureBasin(BASIN, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
  // Needs no token, because it is reached on localhost only. Requests of pages of other origins are rejected.
  // On a network, use access tokens: docs/local-first.md "Authenticating end users".
  const handle = toNodeHandler(hw, { auth: 'none', basin: BASIN, retention: 'infinite' })
  return { handle, close: () => hw.close() }
}

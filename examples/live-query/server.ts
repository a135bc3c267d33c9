import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

/**
 * Opens the list in the directory `data`, which the handler serves below `/v1/stream`. It asks for no token,
 * because Vite listens on this machine only.
 */
export async function startServer() {
  const hw = await open({ storage: filesystem('data') })
  const handler = toNodeHandler(hw, { auth: 'none', durableStreams: { basin: 'shopping' } })
  return { handler, close: () => hw.close() }
}

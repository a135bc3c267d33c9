import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

/**
 * Opens the streams in the directory `data`, which the handler serves below `/v1`. It asks for no token,
 * because Vite listens on this machine only. An app on a network issues tokens to its users.
 */
export async function startServer() {
  const hw = await open({ storage: filesystem('data') })
  await hw.ensureBasin('todo', { defaultStreamConfig: { retentionPolicy: 'infinite' } })
  await hw.basin('todo').ensureStream('lists/shared')
  return { handler: toNodeHandler(hw, { auth: 'none' }), close: () => hw.close() }
}

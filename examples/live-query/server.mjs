// The backend of the app: its files, and the list as a stream below `/v1/stream`.
import { join } from 'node:path'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'

/** Serves the directory of the built app on localhost. The list is in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  return serveApp({ hw, files, port, durableStreams: { basin: 'shopping' } })
}

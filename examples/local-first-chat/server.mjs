// The backend of the app: serves its files, and the streams below `/v1`.
import { join } from 'node:path'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'

const BASIN = 'chat'

/** Serves the directory of the built app on localhost. The rooms are in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  await hw.ensureBasin(BASIN, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
  // The basin of requests that name none, and a retention for rooms that other programs create.
  return serveApp({ hw, files, port, basin: BASIN, retention: 'infinite' })
}

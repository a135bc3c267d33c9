import { context } from 'esbuild'
import { buildExample } from './build.mjs'

/** Builds an example and serves it on localhost. Port 0 selects a free port. */
export async function serveExample(name, port) {
  const servedir = await buildExample(name)
  const files = await context({ logLevel: 'silent' })
  const served = await files.serve({ servedir, host: '127.0.0.1', port })
  return { url: `http://localhost:${served.port}`, close: () => files.dispose() }
}

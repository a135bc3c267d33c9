import { context } from 'esbuild'
import { buildExample } from './build.mjs'

/** Builds an example and serves it to this machine. Port 0 is one that is free. */
export async function serveExample(name, port) {
  const servedir = await buildExample(name)
  const files = await context({ logLevel: 'silent' })
  const served = await files.serve({ servedir, host: '127.0.0.1', port })
  return { url: `http://localhost:${served.port}`, close: () => files.dispose() }
}

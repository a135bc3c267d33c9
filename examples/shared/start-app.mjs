import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { context } from 'esbuild'
import { buildApp } from './build-app.mjs'

/**
 * Builds the app in a directory and serves it on localhost: with its own server, if it has one. Port 0 selects a
 * free port.
 */
export async function startApp(directory, port) {
  const files = await buildApp(directory)
  const server = join(directory, 'server.mjs')
  if (existsSync(server)) return (await import(pathToFileURL(server).href)).startServer({ files, port })
  const serving = await context({ logLevel: 'silent' })
  const served = await serving.serve({ servedir: files, host: '127.0.0.1', port })
  return { url: `http://localhost:${served.port}`, close: () => serving.dispose() }
}

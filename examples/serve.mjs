import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { buildExample } from './build.mjs'
import { staticFiles } from './static-files.mjs'

/** Builds an example and serves it on localhost. Port 0 selects a free port. */
export async function serveExample(name, port) {
  const files = staticFiles(await buildExample(name))
  const service = await openService(name)
  const server = createServer((request, response) => {
    if (service === undefined) void files(request, response)
    else service.handle(request, response, () => files(request, response))
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
    await service?.close()
  }
  return { url: `http://localhost:${server.address().port}`, close }
}

/** Opens the service of an example that has one; its data is in `data`, or in another directory. */
export async function openService(name, directory = join(import.meta.dirname, name, 'data')) {
  const module = join(import.meta.dirname, name, 'server.mjs')
  if (!existsSync(module)) return undefined
  const { openServer } = await import(module)
  return openServer(directory)
}

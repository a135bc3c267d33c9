// The backend of the app: serves its files, and the streams below `/v1`.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

const TYPES = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

/** Serves the directory of the built app on localhost. The list is in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  await hw.ensureBasin('todo')
  await hw.basin('todo').ensureStream('lists/shared')
  // Anyone who can connect has full access. An app would issue access tokens to its users.
  const streams = toNodeHandler(hw, { auth: 'none' })
  const server = createServer((request, response) => {
    streams(request, response, () => void sendFile(files, request, response))
  })
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  return {
    url: `http://localhost:${server.address().port}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await hw.close()
    },
  }
}

async function sendFile(files, request, response) {
  const { pathname } = new URL(request.url, 'http://localhost')
  const name = pathname === '/' ? 'index.html' : pathname.slice(1)
  try {
    // The app has no folders, so a name with a slash is none of its files.
    if (!/^[\w.-]+$/.test(name) || name.startsWith('.')) throw new Error('not a file of the app')
    const contents = await readFile(join(files, name))
    response.setHeader('content-type', TYPES[extname(name)] ?? 'application/octet-stream').end(contents)
  } catch {
    response.writeHead(404).end()
  }
}

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { toNodeHandler } from 'headwater/node'

const TYPES = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

/**
 * Serves a directory on localhost, and below `/v1` the streams of an engine, which is closed with the server.
 * No token is needed: only programs of this machine can connect, and requests of pages of other origins are
 * rejected. An app on a network issues access tokens to its users (docs/local-first.md). Requests below
 * `apiPath` are those of `api`, if the app has one.
 */
export async function serveApp({ hw, files, port, api, apiPath = '/api/', ...options }) {
  const streams = toNodeHandler(hw, { auth: 'none', ...options })
  const server = createServer((request, response) => {
    streams(request, response, () => {
      if (api !== undefined && request.url.startsWith(apiPath)) void reply(api, request, response)
      else void sendFile(files, request, response)
    })
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

async function reply(api, request, response) {
  try {
    await api(request, response)
  } catch (error) {
    console.error(error)
    if (!response.headersSent) response.writeHead(500)
    response.end()
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

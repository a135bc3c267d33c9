import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'

const TYPES = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

/** Returns a request listener that serves the files of a directory, and none below or beside it. */
export function staticFiles(directory) {
  return async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const name = pathname === '/' ? 'index.html' : pathname.slice(1)
    try {
      if (!/^[\w.-]+$/.test(name)) throw new Error('not a name of a file')
      const contents = await readFile(join(directory, name))
      response.setHeader('content-type', TYPES[extname(name)] ?? 'text/plain').end(contents)
    } catch {
      response.writeHead(404).end()
    }
  }
}

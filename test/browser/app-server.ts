import { readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { extname, join } from 'node:path'
import { reservedPort } from '../support/port.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

/** Serves a directory; can be stopped and restarted at the same address. */
export interface AppServer {
  readonly url: string
  /** The paths requested since the last start. */
  readonly requests: readonly string[]
  stop(): Promise<void>
  start(): Promise<void>
  /** Stops the server and deletes the directory. */
  remove(): Promise<void>
}

export async function serveDirectory(directory: string): Promise<AppServer> {
  const requests: string[] = []
  let server: Server | undefined
  const port = await reservedPort()

  async function start(): Promise<void> {
    const starting = createServer(async (request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://localhost')
      requests.push(pathname)
      const file = pathname === '/' ? '/index.html' : pathname
      try {
        const contents = await readFile(join(directory, file))
        response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain').end(contents)
      } catch {
        response.writeHead(404).end()
      }
    })
    await new Promise<void>((resolve) => starting.listen(port, '127.0.0.1', resolve))
    server = starting
    requests.length = 0
  }

  async function stop(): Promise<void> {
    const stopping = server
    server = undefined
    if (stopping === undefined) return
    await new Promise((resolve) => {
      stopping.close(resolve)
      stopping.closeAllConnections()
    })
  }

  async function remove(): Promise<void> {
    await stop()
    await rm(directory, { recursive: true, force: true })
  }

  await start()
  return { url: `http://localhost:${port}/`, requests, start, stop, remove }
}

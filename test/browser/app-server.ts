import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// @ts-expect-error: a plain script without types
import { buildExample } from '../../examples/build.mjs'
// @ts-expect-error: a plain script without types
import { openService } from '../../examples/serve.mjs'
// @ts-expect-error: a plain script without types
import { staticFiles } from '../../examples/static-files.mjs'
import { reservedPort } from '../support/port.ts'

/** What an example serves beside its files. */
interface AppService {
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void
  close(): Promise<void>
}

/** Serves a directory; can be stopped and restarted at the same address. */
export interface AppServer {
  readonly url: string
  /** The paths requested since the last start. */
  readonly requests: readonly string[]
  /** Stops the server, and the service of the example: it loses what it has not stored. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Stops the server and deletes its directories. */
  remove(): Promise<void>
}

/** Serves an example, with its own service on a new directory if it has one. */
export async function serveExample(name: string): Promise<AppServer> {
  const directory: string = await buildExample(name, await mkdtemp(join(tmpdir(), 'headwater-example-')))
  const data = await mkdtemp(join(tmpdir(), 'headwater-example-data-'))
  const server = await serveDirectory(directory, () => openService(name, data))
  const remove = async () => {
    await server.remove()
    await rm(data, { recursive: true, force: true })
  }
  return { ...server, remove }
}

export async function serveDirectory(
  directory: string,
  open: () => Promise<AppService | undefined> = async () => undefined,
): Promise<AppServer> {
  const requests: string[] = []
  const files = staticFiles(directory)
  let server: Server | undefined
  let service: AppService | undefined
  const port = await reservedPort()

  async function start(): Promise<void> {
    const opened = await open()
    const starting = createServer((request, response) => {
      requests.push(new URL(request.url ?? '/', 'http://localhost').pathname)
      if (opened === undefined) files(request, response)
      else opened.handle(request, response, () => files(request, response))
    })
    await new Promise<void>((resolve) => starting.listen(port, '127.0.0.1', resolve))
    server = starting
    service = opened
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
    await service?.close()
  }

  async function remove(): Promise<void> {
    await stop()
    await rm(directory, { recursive: true, force: true })
  }

  await start()
  return { url: `http://localhost:${port}/`, requests, start, stop, remove }
}

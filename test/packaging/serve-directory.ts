import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { onTestFinished } from 'vitest'

/** No `eval`; workers also of code that the page holds. */
const POLICY = "default-src 'none'; script-src 'self' blob:; worker-src 'self' blob:; connect-src 'self'"
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' }

/** Serves the files of a directory until the test ends, at the address that it resolves to. */
export async function serveDirectory(directory: string): Promise<string> {
  const server = createServer(async (req, res) => {
    const path = new URL(req.url ?? '/', 'http://localhost').pathname.replace(/\/$/, '/index.html')
    const contents = await readFile(join(directory, path)).catch(() => undefined)
    if (contents === undefined) {
      res.writeHead(404).end()
      return
    }
    const type = TYPES[extname(path)] ?? 'application/octet-stream'
    res.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY }).end(contents)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

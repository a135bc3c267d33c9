// @module-tag slow

import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { type ServeOptions, serve } from '../../../adapters/node/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { reservedPort } from '../../support/port.ts'
import { inChromium } from '../support.ts'

const HOST = 'evil.example'

/** Serves a page to `HOST` until the returned function is called. */
async function servePage(port: number): Promise<() => Promise<void>> {
  const server = createServer((_, res) => res.setHeader('content-type', 'text/html').end('<p>welcome'))
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

async function startServer(port: number, options: ServeOptions): Promise<void> {
  const hw = await open({ storage: memory() })
  const server = await serve(hw, { port, ...options })
  onTestFinished(async () => {
    await Promise.all([server.close({ graceMs: 0 }), hw.close()])
  })
}

inChromium(
  'a page whose host resolves to a loopback address after it has loaded',
  (browser) => {
    it.each<[string, ServeOptions, number]>([
      ['is rejected without authentication', { auth: 'none' }, 421],
      ['is served if its host is allowed', { auth: 'none', allowedHosts: [HOST] }, 200],
      ['has no token', { auth: 'token' }, 401],
    ])('%s', async (_, options, status) => {
      const port = await reservedPort()
      const endPage = await servePage(port)
      const page = await browser.context.newPage()
      onTestFinished(() => page.close())
      await page.goto(`http://${HOST}:${port}/`)
      await endPage()
      await startServer(port, options)

      const statuses = await page.evaluate(async () => {
        const read = await fetch('/v1/basins')
        const written = await fetch('/v1/basins/my-basin', { method: 'PUT' })
        return [read.status, written.status]
      })

      expect(statuses).toEqual([status, status === 200 ? 201 : status])
    })
  },
  { args: [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`] },
)

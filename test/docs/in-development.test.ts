// @module-tag slow

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServer } from 'vite'
import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { namedExample, PROJECT } from './examples.ts'

/** The address of the streams in the page. */
const TARGET = 'http://127.0.0.1:8787'

/** Starts a development server with the configuration of the page, after an edit. */
async function startVite(edit: (config: string) => string): Promise<string> {
  // Inside the project, which has Vite.
  const root = await mkdtemp(join(PROJECT, 'dist', 'guides-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const configFile = join(root, 'vite.config.js')
  await writeFile(configFile, edit(await namedExample('docs/http.md', 'vite.config', 'js')))
  const vite = await createServer({ root, configFile, server: { port: 0, ws: false }, logLevel: 'silent' })
  onTestFinished(() => vite.close())
  await vite.listen()
  return vite.resolvedUrls!.local[0]!.slice(0, -1)
}

async function startStreams() {
  const hw = await open({ storage: memory() })
  const server = await serve(hw, { auth: 'none', port: 0 })
  onTestFinished(async () => {
    await server.close()
    await hw.close()
  })
  return { hw, url: server.url }
}

/** A `fetch` that sends the origin of a page, as browsers do. */
function ofPage(origin: string) {
  return (request: Request) => {
    const own = new Request(request)
    own.headers.set('origin', origin)
    return fetch(own)
  }
}

it('docs/http.md: a page follows a stream through the proxy of Vite', async () => {
  const { hw, url } = await startStreams()
  const vite = await startVite((config) => config.replace(TARGET, url))
  const remote = await connect({ url: `${vite}/streams`, fetch: ofPage(vite) })
  const chat = remote.basin('my-app').stream('chat')
  await chat.append('hello')
  const followed = chat.follow({ seqNum: 0, count: 2 }).toArray()
  await hw.basin('my-app').stream('chat').append('live')
  expect((await followed).map(({ body }) => body)).toEqual(['hello', 'live'])
  await remote.close()
})

it('docs/http.md: a proxy that replaces the host is of another origin', async () => {
  const { url } = await startStreams()
  const vite = await startVite((config) =>
    config.replace(`target: '${TARGET}',`, `target: '${url}', changeOrigin: true,`),
  )
  const response = await ofPage(vite)(new Request(`${vite}/streams/v1/basins`))
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('origin')])
})

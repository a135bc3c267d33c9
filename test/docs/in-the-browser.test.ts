// @module-tag slow

import { copyFile, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { closeRecord, type Engine, open } from '../../src/index.ts'
import { describeInChromium, suiteBrowser } from '../browser/chromium.ts'
import { type StaticServer, serveDirectory } from '../browser/static-servers.ts'
import { bundledExample } from './bundled-example.ts'
import { namedExample, PROJECT } from './examples.ts'

const ICON = '<link rel="icon" href="data:,">'
const pageOf = (script: string) =>
  `<!doctype html><title>page</title>${ICON}<script type="module" src="${script}"></script>`

/** What each page prints on the console. */
const PRINTED = {
  // Two engines on one database.
  tab: ['0 written here', '1 seen there', 'true boolean'],
  // Through a service worker.
  served: ['200 written in a page'],
  // Without a bundler.
  module: ['0 hello'],
  'import-map': ['1'],
  // Of a server.
  'event-source': ['0 hello', '1 bye', 'ended'],
}

/** The address of the server in the pages. */
const DOCUMENTED_PORT = 8787

describeInChromium('the pages of docs/browser.md', () => {
  const browser = suiteBrowser()
  let server: StaticServer
  let hw: Engine
  let streams: Awaited<ReturnType<typeof serve>>
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-docs-'))
    const write = (name: string, contents: string | Uint8Array) => writeFile(join(directory, name), contents)
    await write('tab.html', pageOf('tab.js'))
    await write('tab.js', await bundledExample('docs/browser.md', 'tab', 'esm'))
    await write('served.html', pageOf('served.js'))
    await write('served.js', await bundledExample('docs/browser.md', 'page', 'esm'))
    await write('service-worker.js', await bundledExample('docs/browser.md', 'service-worker', 'iife'))
    await copyFile(join(PROJECT, 'dist/browser.js'), join(directory, 'browser.js'))
    server = await serveDirectory(directory)
    hw = await open({ storage: memory() })
    await hw.basin('my-app').stream('answer').append(['hello', 'bye', closeRecord()])
    streams = await serve(hw, { auth: 'none', port: 0, cors: [server.url] })
    const { port } = new URL(streams.url)
    for (const name of ['module', 'import-map', 'follow', 'event-source']) {
      const html = await namedExample('docs/browser.md', name, 'html')
      const page = html.replace('<!doctype html>', `$&${ICON}`)
      const served = page.replace(`:${DOCUMENTED_PORT}`, `:${port}`)
      await write(`${name}.html`, served)
      if (name === 'event-source') await write('no-stream.html', served.replace('/answer/', '/missing/'))
    }
  })
  afterAll(async () => {
    await streams?.close()
    await hw?.close()
    await server?.close()
  })

  it.each(Object.entries(PRINTED))('%s.html prints what it documents', async (name, expected) => {
    const page = await browser.page('about:blank')
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    page.on('pageerror', (error) => printed.push(String(error)))
    await page.goto(`${server.url}/${name}.html`)
    await expect.poll(() => printed).toEqual(expected)
    expect(server.requests.filter((path) => path.startsWith('/v1'))).toEqual([])
  })

  it('event-source.html reports that there is no such stream', async () => {
    const page = await browser.page('about:blank')
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    await page.goto(`${server.url}/no-stream.html`)
    await expect.poll(() => printed).toContain('the request was refused')
  })

  it('follow.html shows what is appended to the stream of a server', async () => {
    const page = await browser.page(`${server.url}/follow.html`)
    const shown = () => page.locator('li').allTextContents()
    await expect.poll(shown).toEqual(['hello'])
    await hw.basin('my-app').stream('chat').append('from the server')
    await expect.poll(shown).toEqual(['hello', 'from the server'])
  })
})

// @module-tag slow

import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inChromium } from '../browser/support.ts'
import { type InstalledApp, installApp } from './installed-app.ts'
import { serveDirectory } from './serve-directory.ts'
import { serviceWorkerBundlers } from './service-worker-bundlers.ts'

/** Calls that need lazily loaded code elsewhere: creation, lists, metrics, tokens. */
async function useEverything(): Promise<unknown[]> {
  const { serviceWorker } = navigator
  const controlled = new Promise((resolve) => serviceWorker.addEventListener('controllerchange', resolve))
  await serviceWorker.register('service-worker.js')
  await controlled
  const call = async (path: string, method = 'GET', body?: unknown) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return [response.status, await response.json()]
  }
  const messages: unknown[] = []
  for (const [path, body] of [
    ['/v1/basins/app', {}],
    ['/v1/streams/notes', {}],
  ] as const) {
    messages.push((await call(path, 'PUT', body))[0])
  }
  messages.push((await call('/v1/streams/notes/records', 'POST', { records: [{ body: 'a' }] }))[0])
  const [, list] = await call('/v1/streams')
  messages.push(list.streams.map(({ name }: { name: string }) => name))
  messages.push((await call('/v1/metrics?set=active-basins&start=0&end=60'))[0])
  messages.push((await call('/v1/access-tokens'))[0])
  return messages
}

inChromium('a service worker in one file', (browser) => {
  let app: InstalledApp
  beforeAll(async () => {
    app = await installApp()
  })
  afterAll(() => app?.remove())

  it.each(Object.entries(serviceWorkerBundlers))('by %s contains the whole package', async (_, bundler) => {
    const directory = await bundler(app.directory)
    expect((await readdir(directory)).sort()).toEqual(['index.html', 'service-worker.js'])
    const url = await serveDirectory(directory)
    const page = await browser.page()
    await page.goto(url)
    expect(await page.evaluate(useEverything)).toEqual([201, 201, 200, ['notes'], 200, 200])
  })
})

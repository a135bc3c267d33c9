// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type * as EventSources from '../pages/event-source.ts'
import type * as Fetching from '../pages/fetch.ts'
import type * as PublishedClient from '../pages/published-client.ts'
import type * as Controlled from '../pages/service-worker-client.ts'
import { inChromium, scriptIn } from '../support.ts'

inChromium('the HTTP handler in a service worker', (browser) => {
  async function controlledPage() {
    const page = await browser.page()
    const { control, stats, rootToken } = await scriptIn<typeof Controlled>(page, 'service-worker-client')
    await control()
    const { send } = await scriptIn<typeof Fetching>(page, 'fetch')
    const call = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
      send({
        method,
        url: `${browser.origin}${path}`,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body }),
      })
    const idle = () => expect.poll(stats).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
    return { page, call, stats, idle, rootToken }
  }

  it('serves the published client', async () => {
    const { page, idle } = await controlledPage()
    const { follow, errors } = await scriptIn<typeof PublishedClient>(page, 'published-client')
    const address = `${browser.origin}/open/v1`
    expect(await follow(address, 'followed')).toEqual({ end: 2, bodies: ['a', 'b', 'c', 'd'] })
    expect(await errors(address, 'with-errors')).toEqual({ expected: 1, tail: 1 })
    await idle()
  })

  it('serves EventSource, also after the browser stopped it, until the page is closed', async () => {
    const [observer, follower] = [await controlledPage(), await controlledPage()]
    await observer.call('PUT', '/open/v1/basins/my-first-app')
    await observer.call('PUT', '/open/v1/streams/s')
    const records = '/open/v1/streams/s/records'
    const append = async (body: string) => {
      const { status } = await observer.call('POST', records, JSON.stringify({ records: [{ body }] }))
      expect(status).toBe(200)
    }
    await append('a')
    await stopServiceWorkers(observer.page)
    const { listen, bodies } = await scriptIn<typeof EventSources>(follower.page, 'event-source')
    await listen(`${browser.origin}${records}?seq_num=0`)
    await expect.poll(bodies).toEqual(['a'])
    await append('b')
    await expect.poll(bodies).toEqual(['a', 'b'])
    expect(await observer.stats()).toMatchObject({ openReads: 1 })
    await follower.page.close()
    await observer.idle()
  })

  it('requires tokens, and ignores navigations and other paths', async () => {
    const { page, call, rootToken } = await controlledPage()
    const authorization = `Bearer ${await rootToken()}`
    const statuses = [
      (await call('GET', '/guarded/v1/basins')).status,
      (await call('GET', '/guarded/v1/basins', undefined, { authorization })).status,
    ]
    expect(statuses).toEqual([401, 200])
    const fetched = await page.evaluate(async () => (await fetch('/open/v2/basins')).text())
    expect(fetched).toContain('/open/v2/basins does not exist')
    const navigated = await page.goto(`${browser.origin}/open/v1/basins`)
    expect(navigated?.fromServiceWorker()).toBe(false)
  })
})

/** Stops all service workers, as browsers do with idle ones. */
async function stopServiceWorkers(page: Page): Promise<void> {
  const devTools = await page.context().newCDPSession(page)
  let stops = 0
  devTools.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
    stops += versions.filter(({ runningStatus }) => runningStatus === 'stopped').length
  })
  await devTools.send('ServiceWorker.enable')
  const before = stops
  await devTools.send('ServiceWorker.stopAllWorkers')
  await expect.poll(() => stops).toBeGreaterThan(before)
}

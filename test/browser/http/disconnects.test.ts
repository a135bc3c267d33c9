// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type * as Leaving from '../pages/disconnects.ts'
import { inChromium, scriptIn, startService } from '../support.ts'

const BASIN = 'my-first-app'
const BATCHES = 24
/** Too slow to transfer all batches while the test runs. */
const SLOWLY = { offline: false, latency: 0, downloadThroughput: 500_000, uploadThroughput: 500_000 }

async function startWithStream() {
  const service = await startService()
  await service.hw.createBasin(BASIN)
  const stream = service.hw.basin(BASIN).stream('s')
  await stream.append('a')
  return { ...service, stream, records: `${service.urlOf(BASIN)}/v1/streams/s/records` }
}

inChromium('a page that disconnects leaves nothing open on the server', (browser) => {
  const ways: readonly [name: string, leave: (page: Page) => Promise<unknown>][] = [
    ['navigates away', (page) => page.goto('about:blank')],
    ['is reloaded', (page) => page.reload()],
    ['is closed', (page) => page.close()],
    ['crashes', crash],
  ]

  it.each(ways)('when it %s while it waits', async (_, leave) => {
    const service = await startWithStream()
    const page = await browser.page()
    const { wait } = await scriptIn<typeof Leaving>(page, 'disconnects')
    await wait(service.records)
    await expect.poll(service.open).toMatchObject({ openReads: 3, waitingReads: 3, requests: 3 })
    await leave(page)
    await service.idle()
  })

  it.each(ways)('when it %s during a response', async (_, leave) => {
    const service = await startWithStream()
    for (let i = 0; i < BATCHES; i++) await service.stream.append(new Uint8Array(1_000_000).fill(0x20))
    const page = await browser.page()
    const { begin } = await scriptIn<typeof Leaving>(page, 'disconnects')
    const devTools = await page.context().newCDPSession(page)
    await devTools.send('Network.enable')
    await devTools.send('Network.emulateNetworkConditions', SLOWLY)
    expect(await begin(service.records)).toBe(200)
    expect(service.open()).toMatchObject({ openReads: 1, waitingReads: 0, requests: 1 })
    await leave(page)
    await service.idle()
  })

  it('when it aborts its requests', async () => {
    const service = await startWithStream()
    const { abort } = await scriptIn<typeof Leaving>(await browser.page(), 'disconnects')
    expect(await abort(service.records)).toEqual(['AbortError', 'AbortError'])
    await service.idle()
  })
})

async function crash(page: Page): Promise<void> {
  const crashed = page.waitForEvent('crash')
  await page.goto('chrome://crash').catch(() => {})
  await crashed
}

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type * as Leaving from './pages/leaving.ts'
import { inChromium, PATIENCE, scriptIn, startService } from './support.ts'

const BASIN = 'my-first-app'
const BATCHES = 24
/** Far from enough for all batches while the test runs. */
const SLOWLY = { offline: false, latency: 0, downloadThroughput: 500_000, uploadThroughput: 500_000 }

async function startWithStream() {
  const service = await startService()
  await service.hw.createBasin(BASIN)
  const stream = service.hw.basin(BASIN).stream('s')
  await stream.append('a')
  return { ...service, stream, records: `${service.urlOf(BASIN)}/v1/streams/s/records` }
}

inChromium('a page that goes away leaves nothing on the server', (browser) => {
  const ways: readonly [name: string, leave: (page: Page) => Promise<unknown>][] = [
    ['another page is opened in its place', (page) => page.goto('about:blank')],
    ['it is loaded again', (page) => page.reload()],
    ['its tab is closed', (page) => page.close()],
    ['its process crashes', crash],
  ]

  it.each(ways)('when it waits and %s', async (_, leave) => {
    const service = await startWithStream()
    const page = await browser.page()
    const { wait } = await scriptIn<typeof Leaving>(page, 'leaving')
    await wait(service.records)
    await expect.poll(service.open, PATIENCE).toMatchObject({ openReads: 3, waitingReads: 3, requests: 3 })
    await leave(page)
    await service.idle()
  })

  it.each(ways)('when it is in the middle of a response and %s', async (_, leave) => {
    const service = await startWithStream()
    for (let i = 0; i < BATCHES; i++) await service.stream.append(new Uint8Array(1_000_000).fill(0x20))
    const page = await browser.page()
    const { begin } = await scriptIn<typeof Leaving>(page, 'leaving')
    const devTools = await page.context().newCDPSession(page)
    await devTools.send('Network.enable')
    await devTools.send('Network.emulateNetworkConditions', SLOWLY)
    expect(await begin(service.records)).toBe(200)
    expect(service.open()).toMatchObject({ openReads: 1, waitingReads: 0, requests: 1 })
    await leave(page)
    await service.idle()
  })

  it('when it aborts', async () => {
    const service = await startWithStream()
    const { abort } = await scriptIn<typeof Leaving>(await browser.page(), 'leaving')
    expect(await abort(service.records)).toEqual(['AbortError', 'AbortError'])
    await service.idle()
  })
})

async function crash(page: Page): Promise<void> {
  const crashed = page.waitForEvent('crash')
  await page.goto('chrome://crash').catch(() => {})
  await crashed
}

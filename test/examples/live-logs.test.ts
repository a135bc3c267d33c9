// @module-tag slow

import { afterAll, beforeAll, expect, it } from 'vitest'
import { lineOf } from '../../examples/live-logs/src/line.ts'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { look } from './look.ts'

it.each([
  ['2030-01-31T12:00:00.500Z ERROR lost', 'ERROR', 'lost', '2030-01-31T12:00:00.500Z'],
  ['2030-01-31 12:00:00,500Z [main] WARN slow', 'WARN', '[main] WARN slow', '2030-01-31T12:00:00.500Z'],
  ['fatal: no space', 'ERROR', 'no space', '2030-01-01T00:00:00.000Z'],
  ['without a level', 'INFO', 'without a level', '2030-01-01T00:00:00.000Z'],
])('reads the time and the level of %j', (body, level, text, time) => {
  const timestamp = Date.UTC(2030, 0, 1)
  const line = lineOf({ seqNum: 7, timestamp, body, headers: [], command: undefined })
  expect(line).toMatchObject({ seqNum: 7, level, text })
  expect(line.time.toISOString()).toBe(time)
})

describeInChromium('the example live-logs', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('live-logs')
  })
  afterAll(() => server?.remove())

  async function append(...lines: string[]): Promise<void> {
    const response = await fetch(`${server.url}v1/streams/app/records`, {
      method: 'POST',
      headers: { 'svc-basin': 'logs', 'content-type': 'application/json' },
      body: JSON.stringify({ records: lines.map((body) => ({ body })) }),
    })
    expect(response.status).toBe(200)
  }

  it('follows the output of a program, which the command line appends', async () => {
    const page = await browser.page(server.url)
    await expect.poll(() => page.getByRole('status').textContent()).toBe('Live')
    await page.getByText('listening on port 3000').waitFor()
    const visible = page.locator('#lines li:visible')
    const before = await visible.count()
    await expect.poll(() => visible.count()).toBeGreaterThan(before)
  })

  it('shows the lines that match a search and have a chosen level', async () => {
    const page = await browser.page(server.url)
    await append('ERROR the <b>first</b> needle', 'DEBUG the second needle', 'WARN something else')
    const visible = () => page.locator('#lines li:visible span').allTextContents()
    await page.getByRole('searchbox', { name: 'Search' }).fill('NEEDLE')
    await expect.poll(visible).toEqual(['the <b>first</b> needle', 'the second needle'])
    expect(await page.locator('#lines li:visible mark').allTextContents()).toEqual(['needle', 'needle'])
    await page.getByRole('checkbox', { name: /DEBUG/ }).uncheck()
    await expect.poll(visible).toEqual(['the <b>first</b> needle'])
    // Lines that arrive later are searched too.
    await append('INFO one more needle', 'DEBUG a hidden needle')
    await expect.poll(visible).toEqual(['the <b>first</b> needle', 'one more needle'])
    await look(page, 'live-logs-search')
  })

  it('stays where a person reads, and returns to the end on request', async () => {
    const page = await browser.page(server.url)
    await append(...Array.from({ length: 200 }, (_, i) => `INFO line ${i}`))
    const lines = page.locator('#lines')
    await page.getByText('line 199').waitFor()
    await lines.evaluate((list) => list.scrollTo(0, 0))
    await page.getByRole('button', { name: 'Latest lines' }).waitFor()
    await append('INFO the last one')
    await page.getByText('the last one').waitFor({ state: 'attached' })
    expect(await lines.evaluate((list) => list.scrollTop)).toBe(0)
    await page.getByRole('button', { name: 'Latest lines' }).click()
    await expect.poll(() => page.getByText('the last one').isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Latest lines' }).waitFor({ state: 'hidden' })
    await look(page, 'live-logs')
  })
})

// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { describeInChromium } from '../browser/chromium.ts'
import { servedConsole } from './support.ts'

describeInChromium('the console in daily work', () => {
  const served = servedConsole()
  const orders = (count: number) =>
    Array.from({ length: count }, (_, id) => ({
      body: JSON.stringify({ id, total: id % 100 }),
      headers: [['tenant', `t${id % 4}`]] as const,
    }))

  async function createStream(basin: string, count: number) {
    await served.hw.createBasin(basin)
    await served.hw.basin(basin).createStream('orders')
    const stream = served.hw.basin(basin).stream('orders')
    for (let start = 0; start < count; start += 500)
      await stream.append(orders(count).slice(start, start + 500))
    return { stream, fragment: `#/basins/${basin}/streams/orders` }
  }
  const firstRow = (page: Page) => page.locator('[role=option]').first().textContent()

  it('keeps position, record, filter and columns in the address, over a reload', async () => {
    const { fragment } = await createStream('basin-of-places', 2000)
    const page = await served.open(`${fragment}?from=500`)
    await page.getByText('500 records loaded: 500 to 999').waitFor()
    await page.getByRole('searchbox').fill('tenant=t2')
    await page.getByText('125 match').waitFor()
    await page.getByLabel('Columns').fill('.id tenant')
    await page.locator('[role=option]', { hasText: '502' }).first().click()
    await page.getByRole('heading', { name: 'Record 502' }).waitFor()
    await expect.poll(() => page.url()).toContain('record=502')
    expect(page.url()).toContain('q=tenant%3Dt2&column=.id&column=tenant')
    await page.reload()
    await page.getByRole('heading', { name: 'Record 502' }).waitFor()
    await page.getByText('125 match').waitFor()
    await expect.poll(() => firstRow(page)).toMatch(/^502.*502t2$/)
    await page.getByRole('button', { name: 'Load older' }).click()
    await page.getByText('1,000 records loaded: 0 to 999').waitFor()
    await page.getByText('250 match').waitFor()
  })

  it('searches the whole stream, and shows what it found in context', async () => {
    const { fragment } = await createStream('basin-to-search', 3000)
    const page = await served.open(fragment)
    await page.getByText('Live').waitFor()
    await page.getByRole('searchbox').fill('.id>=700 .id<703 OR .id=2999')
    await page.getByRole('button', { name: 'Search the stream' }).click()
    await page.getByText('Searched the whole stream').waitFor()
    await page.getByText('4 found').waitFor()
    await page.getByText('3,000 of 3,000 records').waitFor()
    await page.locator('[role=option]').nth(1).click()
    await page.getByRole('button', { name: 'Show in context' }).click()
    await page.getByText('500 records loaded: 681 to 1180').waitFor()
    await page.getByRole('heading', { name: 'Record 701' }).waitFor()
    await page.getByRole('searchbox').fill('(')
    await page.getByText('“(” without “)”').waitFor()
  })

  it('moves in the list by arrow keys at once', async () => {
    const { fragment } = await createStream('basin-of-arrows', 5)
    const page = await served.open(fragment)
    await page.locator('[role=option]').nth(4).waitFor()
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    await page.getByRole('heading', { name: 'Record 3' }).waitFor()
  })

  it('misses no key that comes before the next frame', async () => {
    const { fragment } = await createStream('basin-of-quick-keys', 5)
    const page = await served.open(fragment)
    const list = page.locator('[role=listbox]')
    await page.locator('[role=option]').nth(4).waitFor()
    await list.evaluate((element) => {
      for (const key of ['ArrowUp', 'ArrowUp', 'ArrowUp']) {
        element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
      }
    })
    await page.getByRole('heading', { name: 'Record 2' }).waitFor()
  })

  it('sorts streams by their numbers, which it loads for those in view', async () => {
    await createStream('basin-of-lists', 10)
    const basin = served.hw.basin('basin-of-lists')
    for (const [name, count] of [
      ['few', 1],
      ['many', 700],
    ] as const) {
      await basin.createStream(name)
      await basin.stream(name).append(orders(count))
    }
    const page = await served.open('#/basins/basin-of-lists')
    const names = () => page.locator('tbody').getByRole('link').allTextContents()
    await page.getByRole('cell', { name: '700' }).first().waitFor()
    await expect.poll(() => names()).toEqual(['few', 'many', 'orders'])
    await page.getByRole('button', { name: 'Records' }).click()
    await expect.poll(() => names()).toEqual(['many', 'orders', 'few'])
    await page.getByRole('button', { name: 'Records' }).click()
    await expect.poll(() => names()).toEqual(['few', 'orders', 'many'])
    await page.getByText('aws:us-east-1').waitFor({ state: 'detached' })
  })

  it('shows who follows a stream, and the usage of a basin with a short name', async () => {
    const { fragment } = await createStream('cafe', 3)
    const follower = await served.open(fragment)
    await follower.getByText('Live').waitFor()
    const page = await served.open('#/basins/cafe/followers')
    const row = page.getByRole('row', { name: /orders.*Server-Sent Events/ })
    await row.waitFor()
    expect(await row.textContent()).toContain('Mozilla')
    await page.getByRole('link', { name: 'Usage' }).last().click()
    await page.locator('.chart svg').first().waitFor()
  })

  it('appends a record again with changes, and many from a template', async () => {
    const { stream, fragment } = await createStream('basin-of-repeats', 1)
    const page = await served.open(fragment)
    await page.locator('[role=option]').first().click()
    await page.getByRole('button', { name: 'Append again' }).click()
    await expect.poll(() => page.getByLabel('Body').inputValue()).toBe('{"id":0,"total":0}')
    await page.getByLabel('Body').fill('changed')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 1 record: 1 to 1').waitFor()
    await page.getByLabel('What to append').selectOption('Many from a template')
    await page.getByLabel('Template').fill('no {{n}}')
    await page.getByLabel('Records', { exact: true }).fill('25')
    await page.getByLabel('Rate').fill('1000')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 25 records: 2 to 26').waitFor()
    const { records } = await stream.readBatch({ seqNum: 0 })
    expect(records.map(({ body }) => body).slice(1)).toEqual([
      'changed',
      ...Array.from({ length: 25 }, (_, index) => `no ${index + 1}`),
    ])
    expect(records.every(({ headers }) => headers[0]?.[1] === 't0')).toBe(true)
  })

  it('says whether an append that failed may have been stored', async () => {
    const { stream, fragment } = await createStream('basin-of-doubts', 1)
    const page = await served.open(`${fragment}/append`)
    await page.getByLabel('Body').fill('once')
    await page.route('**/records', async (route) => {
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('The records may have been stored').waitFor()
    expect((await stream.checkTail()).seqNum).toBe(2)
    await page.unroute('**/records')
    await page.getByText('Conditions').click()
    await page.getByLabel('Sequence number').fill('0')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Nothing of it was stored').waitFor()
  })

  it('downloads what is shown, with the digits of its numbers', async () => {
    const { stream, fragment } = await createStream('basin-of-files', 1)
    await stream.append([{ body: '{"id":12345678901234567890}', headers: [['tenant', '=1+1']] }])
    const page = await served.open(`${fragment}?column=.id&column=tenant`)
    await page.locator('[role=option]').nth(1).waitFor()
    const textOf = async (name: string) => {
      await page.getByText('Download', { exact: true }).click()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ])
      const chunks: Buffer[] = []
      for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString()
    }
    expect(
      (await textOf('JSON lines'))
        .split('\n')
        .slice(0, 2)
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { seq_num: 0, body: '{"id":0,"total":0}', headers: [['tenant', 't0']] },
      { seq_num: 1, body: '{"id":12345678901234567890}' },
    ])
    expect((await textOf('CSV')).split('\r\n').map((line) => line.replace(/,\d{13},/, ',time,'))).toEqual([
      'seq_num,timestamp,.id,tenant',
      '0,time,0,t0',
      "1,time,12345678901234567890,'=1+1",
      '',
    ])
  })
})

// @module-tag slow

import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'

async function isAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
}

describeInChromium('libraries on Durable Streams', () => {
  const [one, other] = [restartableBrowser(), restartableBrowser()]

  describe('the example live-query', () => {
    let server: AppServer
    beforeAll(async () => {
      server = await serveExample('live-query')
    })
    afterAll(() => server?.remove())

    const shows = (page: Page, ...names: string[]) =>
      expect.poll(() => page.locator('li').allTextContents()).toEqual(names)
    async function add(page: Page, name: string): Promise<void> {
      await page.getByLabel('Item', { exact: true }).fill(name)
      await page.getByRole('button', { name: 'Add' }).click()
    }

    it('keeps a query of TanStack DB up to date in two browsers, and after a reload', async () => {
      const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
      await add(mine, 'Pears')
      await add(mine, 'Apples')
      for (const page of [mine, theirs]) await shows(page, 'Apples', 'Pears')
      await theirs.getByLabel('Shop').selectOption('Bakery')
      await shows(theirs)
      await add(theirs, 'Bread')
      await theirs.getByLabel('Shop').selectOption('Market')
      await theirs.getByLabel('Pears').click()
      for (const page of [mine, theirs]) {
        await shows(page, 'Apples')
        await expect.poll(() => page.getByRole('status').textContent()).toBe('1 of 3 bought')
      }
      await mine.reload()
      await shows(mine, 'Apples')
      await isAccessible(mine)
    })
  })

  describe('the example shared-document', () => {
    let server: AppServer
    beforeAll(async () => {
      server = await serveExample('shared-document')
    })
    afterAll(() => server?.remove())

    const textOf = (page: Page) => page.getByLabel('Text')

    it('merges what two browsers type in one document, and keeps it', async () => {
      const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
      for (const page of [mine, theirs]) await page.getByText('Up to date').waitFor()
      const shows = async (text: string) => {
        for (const page of [mine, theirs]) await expect.poll(() => textOf(page).inputValue()).toBe(text)
      }
      // The published producer may lose what is appended while its first request is under way.
      await textOf(mine).press('H')
      await shows('H')
      await textOf(theirs).press('Control+End')
      await textOf(theirs).press('e')
      await shows('He')
      await textOf(mine).press('Control+End')
      await textOf(mine).pressSequentially('llo, world')
      await textOf(theirs).press('Control+Home')
      await textOf(theirs).pressSequentially('Title: ')
      await shows('Title: Hello, world')
      await mine.reload()
      await expect.poll(() => textOf(mine).inputValue()).toBe('Title: Hello, world')
      await isAccessible(mine)
    })
  })
})

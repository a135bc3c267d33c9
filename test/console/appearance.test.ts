// @module-tag slow

import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { describeInChromium } from '../browser/chromium.ts'
import { accessibility, ROOT_TOKEN, servedConsole } from './support.ts'

const STREAM = '#/basins/basin-to-look-at/streams/orders'

describeInChromium('the look of the console', () => {
  const served = servedConsole()
  const withToken = servedConsole({ auth: 'token' })
  let issued = 0

  beforeAll(async () => {
    await served.hw.createBasin('basin-to-look-at')
    await served.hw.basin('basin-to-look-at').createStream('orders')
    const stream = served.hw.basin('basin-to-look-at').stream('orders')
    await stream.append([{ body: '{"id":1}', headers: [['lang', 'en']] }, 'a plain text'])
    await stream.fence('writer-1')
    await served.hw.issueAccessToken({
      id: 'reader',
      scope: { basins: { prefix: '' }, ops: ['list-basins'] },
    })
  })

  /** Every view, once it shows what it loaded. */
  const VIEWS: readonly (readonly [
    title: string,
    fragment: string,
    shown: (page: Page) => Promise<unknown>,
  ])[] = [
    ['basins', '', (page) => page.getByRole('link', { name: 'basin-to-look-at' }).waitFor()],
    ['create basin', '', (page) => page.getByRole('button', { name: 'Create basin' }).click()],
    ['streams', '#/basins/basin-to-look-at', (page) => page.getByRole('link', { name: 'orders' }).waitFor()],
    [
      'basin configuration',
      '#/basins/basin-to-look-at/configuration',
      (page) => page.getByRole('button', { name: 'Save' }).waitFor(),
    ],
    [
      'usage',
      '#/basins/basin-to-look-at/usage',
      async (page) => {
        await page.locator('.chart svg').nth(3).waitFor()
        await page.getByText('Table').first().click()
      },
    ],
    ['records', STREAM, (page) => page.locator('.row', { hasText: 'fence' }).click()],
    ['append', `${STREAM}/append`, (page) => page.getByRole('button', { name: 'Add header' }).click()],
    ['fence and trim', `${STREAM}/fence-and-trim`, (page) => page.getByText('The stream holds').waitFor()],
    ['access tokens', '#/tokens', (page) => page.getByRole('cell', { name: 'reader' }).first().waitFor()],
    [
      'issue token',
      '#/tokens',
      async (page) => {
        await page.getByRole('button', { name: 'Issue token' }).click()
        await page.getByText('Single operations').click()
      },
    ],
    [
      'issued token',
      '#/tokens',
      async (page) => {
        await page.getByRole('button', { name: 'Issue token' }).click()
        await page.getByLabel('Id', { exact: true }).fill(`issued-${++issued}`)
        await page.getByRole('button', { name: 'Issue', exact: true }).click()
        await page.getByRole('button', { name: 'Copy token' }).waitFor()
      },
    ],
    [
      'revoke token',
      '#/tokens',
      async (page) => {
        await page.getByRole('button', { name: 'Revoke reader' }).click()
        await page.getByRole('dialog').waitFor()
      },
    ],
    [
      'create stream',
      '#/basins/basin-to-look-at',
      (page) => page.getByRole('button', { name: 'Create stream' }).click(),
    ],
    ['delete stream', `${STREAM}/configuration`, showDeletion],
    ['delete basin', '#/basins/basin-to-look-at/configuration', showDeletion],
    [
      'trim',
      `${STREAM}/fence-and-trim`,
      async (page) => {
        await page.getByLabel('First record to keep').fill('1')
        await page.getByRole('button', { name: 'Trim', exact: true }).click()
        await page.getByRole('dialog').getByText('This cannot be undone').waitFor()
      },
    ],
    [
      'deleted stream',
      '#/basins/basin-to-look-at/streams/deleted',
      (page) => page.getByRole('alert').waitFor(),
    ],
    ['shortcuts', '', (page) => page.getByRole('button', { name: 'Keyboard shortcuts' }).click()],
  ]

  // A narrow page has the same colours.
  it.each([
    ['light', 1120],
    ['dark', 1120],
    ['light', 360],
  ] as const)('is accessible in %s colours at a width of %i pixels', async (colorScheme, width) => {
    // The other rules of axe do not depend on colours.
    const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
    const page = await served.open()
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 740 })
    for (const [title, fragment, shown] of VIEWS) {
      await page.goto('about:blank')
      await page.goto(`${served.url}/${fragment}`)
      await shown(page)
      expect({ title, ...(await accessibility(page, rules)) }).toEqual({ title, width, violations: [] })
    }
    const tokenPage = await withToken.open()
    await tokenPage.emulateMedia({ colorScheme })
    await tokenPage.setViewportSize({ width, height: 740 })
    await tokenPage.getByRole('heading', { name: 'Access token' }).waitFor()
    expect(await accessibility(tokenPage, rules)).toEqual({ width, violations: [] })
    await tokenPage.getByLabel('Access token', { exact: true }).fill(ROOT_TOKEN)
    await tokenPage.keyboard.press('Enter')
    await tokenPage.getByRole('heading', { name: 'Nothing is stored yet' }).waitFor()
    expect(await accessibility(tokenPage, rules)).toEqual({ width, violations: [] })
  })

  it('works by keyboard', async () => {
    const page = await served.open()
    await page.getByRole('link', { name: 'basin-to-look-at' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Go to the access tokens').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('t')
    await page.getByRole('heading', { name: 'Access tokens' }).waitFor()
    await page.keyboard.press('c')
    await page.getByRole('dialog', { name: 'Issue token' }).waitFor()
    await page.keyboard.press('Escape')
    // The focus returns to where it was before the dialog.
    await expect.poll(() => focused(page)).toBe('?')
    await page.keyboard.press('g')
    await page.keyboard.press('b')
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('basin-to-look-at')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'orders' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('.row').first().waitFor()
    // The link is gone: the heading of the new view has the focus.
    await expect.poll(() => focused(page)).toBe('orders')
    await page.getByRole('listbox', { name: 'Records' }).focus()
    await page.keyboard.press('Home')
    await page.getByRole('heading', { name: 'Record 0' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('heading', { name: 'Record 1' }).waitFor()
    await page.keyboard.press('End')
    await page.getByRole('heading', { name: 'Record 2' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('complementary').count()).toBe(0)
    await page.keyboard.press('p')
    await page.getByText('Paused').waitFor()
    await page.keyboard.press('?')
    await page.getByLabel('Shortcuts of a single key are on').uncheck()
    await page.keyboard.press('Escape')
    await page.getByRole('listbox', { name: 'Records' }).focus()
    await page.keyboard.press('p')
    await page.keyboard.press('Home')
    await page.getByRole('heading', { name: 'Record 0' }).waitFor()
    await page.getByText('Paused').waitFor()
  })

  it('keeps the selected record in view when its contents take the place of the list', async () => {
    const name = 'basin-of-many-records'
    await served.hw.createBasin(name)
    await served.hw.basin(name).createStream('logs')
    await served.hw
      .basin(name)
      .stream('logs')
      .append(Array.from({ length: 100 }, (_, index) => `record ${index}`))
    const page = await served.open()
    await page.setViewportSize({ width: 360, height: 740 })
    await page.goto(`${served.url}/#/basins/${name}/streams/logs`)
    await page.locator('.row', { hasText: 'record 98' }).click()
    await page.getByRole('heading', { name: 'Record 98' }).waitFor()
    const list = page.getByRole('listbox')
    const isInView = async () => {
      const [outer, row] = [
        await list.boundingBox(),
        await page.locator('[aria-selected=true]').boundingBox(),
      ]
      // The height of the list has a fraction, and scrolling goes by whole pixels.
      return row !== null && row.y >= outer!.y - 1 && row.y + row.height <= outer!.y + outer!.height + 1
    }
    await expect.poll(async () => (await list.boundingBox())!.height).toBeLessThan(300)
    await expect.poll(isInView).toBe(true)
    const [close, title] = [page.getByRole('button', { name: 'Close the record' }), page.getByRole('heading')]
    const top = (await close.boundingBox())!.y
    expect(Math.abs(top - (await title.last().boundingBox())!.y)).toBeLessThan(12)
  })

  it('every control can be reached by Tab, and shows that it has the focus', async () => {
    const page = await served.open(STREAM)
    await page.locator('.row').first().click()
    await page.locator('h1').click()
    const count = await page.evaluate(
      () =>
        document
          .querySelector('body > div')!
          .shadowRoot!.querySelectorAll(
            'a[href], :not(.menu > div) > button:not(:disabled), input, select, [tabindex="0"], summary',
          ).length,
    )
    expect(count).toBeGreaterThan(20)
    const focused = new Set<string>()
    for (let presses = 0; presses < 2 * count && focused.size < count; presses++) {
      await page.keyboard.press('Tab')
      const { path, outline } = await page.evaluate(() => {
        const element = document.querySelector('body > div')!.shadowRoot!.activeElement
        if (element === null) return { path: '', outline: 'none' }
        const all = [...document.querySelector('body > div')!.shadowRoot!.querySelectorAll('*')]
        return { path: String(all.indexOf(element)), outline: getComputedStyle(element).outlineStyle }
      })
      if (path === '') continue
      expect(outline).not.toBe('none')
      focused.add(path)
    }
    expect(focused.size).toBe(count)
  })
})

async function showDeletion(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Save' }).waitFor()
  await page.getByRole('button', { name: /^Delete/ }).click()
  await page.getByRole('dialog').getByText('cannot be undone').waitFor()
}

function focused(page: Page): Promise<string | null | undefined> {
  return page.evaluate(() => document.querySelector('body > div')?.shadowRoot?.activeElement?.textContent)
}

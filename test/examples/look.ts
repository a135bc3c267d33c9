import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const SCREENSHOTS = join(import.meta.dirname, '..', '..', 'dist', 'screenshots')
const DESKTOP = { width: 1100, height: 720 }
const PHONE = { width: 390, height: 780 }
const LOOKS = [
  ['desktop-light', DESKTOP, 'light'],
  ['desktop-dark', DESKTOP, 'dark'],
  ['phone-light', PHONE, 'light'],
  ['phone-dark', PHONE, 'dark'],
] as const

/** Takes screenshots, and checks accessibility and that nothing is wider than the page. */
export async function look(page: Page, name: string): Promise<void> {
  for (const [kind, size, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(size)
    await page.screenshot({ path: join(SCREENSHOTS, `${name}-${kind}.png`) })
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
    expect(violations.map(({ id, nodes }) => [kind, id, nodes.map(({ html }) => html)])).toEqual([])
    const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(scrollWidth).toBe(size.width)
  }
}

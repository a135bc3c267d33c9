import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { launchChromium, newProfile, type Profile } from './chromium.ts'

/** A browser for a suite whose tests end it and start it again. */
export interface RestartableBrowser {
  readonly context: BrowserContext
  /** Opens a page, which is closed with the test. */
  page(url: string): Promise<Page>
  /** Ends the browser and starts it again with what it had stored. */
  restart(): Promise<void>
}

/** One for a suite, with a fresh profile. What was thrown in its pages fails the suite. */
export function restartableBrowser(): RestartableBrowser {
  let profile: Profile
  let context: BrowserContext
  const thrown: Error[] = []
  async function launch(): Promise<void> {
    context = await launchChromium(profile)
    context.on('weberror', (error) => thrown.push(error.error()))
  }
  beforeAll(async () => {
    profile = await newProfile()
    await launch()
  })
  afterAll(async () => {
    await context?.close()
    await profile?.remove()
    expect(thrown).toEqual([])
  })
  return {
    get context() {
      return context
    },
    async page(url) {
      const page = await context.newPage()
      onTestFinished(() => page.close())
      await page.goto(url)
      return page
    },
    async restart() {
      await context.close()
      await launch()
    },
  }
}

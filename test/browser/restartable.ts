import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { type Launched, launch, newProfile, type Profile } from './chromium.ts'

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
  let launched: Launched
  const thrown: Error[] = []
  async function start(): Promise<void> {
    launched = await launch(profile)
    launched.context.on('weberror', (error) => thrown.push(error.error()))
  }
  beforeAll(async () => {
    profile = await newProfile()
    await start()
  })
  afterAll(async () => {
    await launched?.close()
    await profile?.remove()
    expect(thrown).toEqual([])
  })
  return {
    get context() {
      return launched.context
    },
    async page(url) {
      const page = await launched.context.newPage()
      onTestFinished(() => page.close())
      await page.goto(url)
      return page
    },
    async restart() {
      await launched.close()
      await start()
    },
  }
}

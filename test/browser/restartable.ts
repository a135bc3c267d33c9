import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { type Launched, launch, newProfile, type Profile } from './chromium.ts'

/** A browser that tests can restart. */
export interface RestartableBrowser {
  readonly context: BrowserContext
  /** Opens a page, which is closed after the test. */
  page(url: string): Promise<Page>
  /** Closes the browser and starts it again with the same profile. */
  restart(): Promise<void>
}

/**
 * A browser with a new profile for the current suite, which fails if its pages have uncaught errors other
 * than those that are expected.
 */
export function restartableBrowser({ expected }: { readonly expected?: RegExp } = {}): RestartableBrowser {
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
    expect(thrown.filter(({ message }) => !expected?.test(message))).toEqual([])
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

import type { Page } from 'playwright-core'
import { expect } from 'vitest'

export interface ServiceWorkers {
  /** Stops all service workers, as browsers do with idle ones. */
  stop(): Promise<void>
  /** Resolves when one has started again. */
  started(): Promise<void>
}

/** Controls the service workers of the browser through the DevTools protocol. */
export async function serviceWorkersOf(page: Page): Promise<ServiceWorkers> {
  const devTools = await page.context().newCDPSession(page)
  let starts = 0
  let stops = 0
  devTools.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
    starts += versions.filter(({ runningStatus }) => runningStatus === 'running').length
    stops += versions.filter(({ runningStatus }) => runningStatus === 'stopped').length
  })
  await devTools.send('ServiceWorker.enable')
  return {
    async stop() {
      const before = stops
      starts = 0
      await devTools.send('ServiceWorker.stopAllWorkers')
      await expect.poll(() => stops).toBeGreaterThan(before)
    },
    started: () => expect.poll(() => starts).toBeGreaterThan(0),
  }
}

import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb, type LowSpace } from '../../../adapters/storage/indexeddb/index.ts'
import { SpaceMonitor } from '../../../adapters/storage/indexeddb/space.ts'
import { systemClock } from '../../../src/index.ts'

const MIB = 1024 * 1024

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A browser with a given usage, which counts measurements. */
function browser(answers: { usage?: number; quota?: number; persisted?: boolean } = {}) {
  const told = { usage: 0, quota: 100 * MIB, persisted: false, measurements: 0, ...answers }
  const storage = {
    estimate: async () => {
      told.measurements++
      return { usage: told.usage, quota: told.quota }
    },
    persisted: async () => told.persisted,
    persist: async () => {
      told.persisted = true
      return true
    },
  }
  vi.stubGlobal('navigator', { storage })
  return told
}

/** Collects what a monitor emits. */
function listen(monitor: SpaceMonitor) {
  const usages: LowSpace[] = []
  const subscription = monitor.low$.subscribe((usage) => usages.push(usage))
  onTestFinished(() => subscription.unsubscribe())
  return { usages, subscription }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('usage and persistence', () => {
  it('are those that the browser reports', async () => {
    browser({ usage: 3, quota: 10, persisted: true })
    expect(await indexedDb('a').usage()).toEqual({ usedBytes: 3, quotaBytes: 10, persisted: true })
  })

  it('persist() calls the browser', async () => {
    const told = browser()
    expect(await indexedDb('a').persist()).toBe(true)
    expect(told.persisted).toBe(true)
  })

  it.each([
    ['there is no navigator', undefined],
    ['there is no storage manager', {}],
    ['the storage manager has no methods', { storage: {} }],
    [
      'the page has no permission',
      {
        storage: {
          estimate: () => Promise.reject(new DOMException('no', 'TypeError')),
          persisted() {
            throw new DOMException('no', 'SecurityError')
          },
          persist: () => Promise.reject(new DOMException('no', 'SecurityError')),
        },
      },
    ],
  ])('are undefined if %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator)
    const unknown = { usedBytes: undefined, quotaBytes: undefined, persisted: undefined }
    expect(await indexedDb('a').usage()).toEqual(unknown)
    expect(await indexedDb('a').persist()).toBe(false)
  })
})

describe('lowSpace$', () => {
  it('emits on subscription if space is low', async () => {
    browser({ usage: 80 * MIB })
    const { usages } = listen(new SpaceMonitor(0.8))
    await settled()
    const usage = { usedBytes: 80 * MIB, quotaBytes: 100 * MIB, persisted: false }
    expect(usages).toEqual([{ ...usage, isFull: false, writtenBytes: 0 }])
  })

  it('emits while space is low, and stops afterwards', async () => {
    const told = browser({ usage: 90 * MIB })
    const monitor = new SpaceMonitor(0.8)
    const { usages } = listen(monitor)
    await settled()
    monitor.recordWritten(20 * MIB)
    await settled()
    expect(usages.length).toBe(2)
    told.usage = 10 * MIB
    monitor.recordWritten(20 * MIB)
    await settled()
    expect(usages.length).toBe(2)
    expect(told.measurements).toBe(3)
  })

  it('does not emit if the browser reports no quota', async () => {
    vi.stubGlobal('navigator', {})
    const monitor = new SpaceMonitor(0.8)
    const { usages } = listen(monitor)
    monitor.recordWritten(100 * MIB)
    await settled()
    expect(usages).toEqual([])
  })

  it('counts the appends of sessions', { tags: ['slow'] }, async () => {
    const told = browser({ usage: 10 * MIB })
    const storage = indexedDb('heard')
    const usages: LowSpace[] = []
    const subscription = storage.lowSpace$.subscribe((usage) => usages.push(usage))
    onTestFinished(() => subscription.unsubscribe())
    const session = await storage.open({ clock: systemClock, onLogChanged: () => {} })
    onTestFinished(() => session.close())
    const writer = await LogWriter.create(session, 'a')
    told.usage = 95 * MIB
    for (let i = 0; i < 20 && usages.length === 0; i++) {
      await writer.append({ bodyBytes: MIB - 8 })
      await settled()
    }
    expect(usages.length).toBe(1)
  })

  it.each([0, -1, 1.1, Number.NaN])('rejects a share of %d', (lowSpaceShare) => {
    expect(() => indexedDb('a', { lowSpaceShare })).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})

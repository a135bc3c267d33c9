import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { indexedDb, type LowSpace } from '../../../adapters/storage/indexeddb/index.ts'
import { SpaceWatch } from '../../../adapters/storage/indexeddb/space-watch.ts'
import { open, systemClock } from '../../../src/index.ts'
import { LogWriter } from '../../../src/storage/conformance/log-writer.ts'

const MIB = 1024 * 1024

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A browser whose answers are set by hand, and counted. */
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

/** What a watch tells, as it comes. */
function listen(watch: SpaceWatch) {
  const usages: LowSpace[] = []
  const subscription = watch.low$.subscribe((usage) => usages.push(usage))
  onTestFinished(() => subscription.unsubscribe())
  return { usages, subscription }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('usage and persistence', () => {
  it('are what the browser tells', async () => {
    browser({ usage: 3, quota: 10, persisted: true })
    expect(await indexedDb('a').usage()).toEqual({ usedBytes: 3, quotaBytes: 10, persisted: true })
  })

  it('persistence is asked for', async () => {
    const told = browser()
    expect(await indexedDb('a').persist()).toBe(true)
    expect(told.persisted).toBe(true)
  })

  it.each([
    ['there is no navigator', undefined],
    ['there is no storage manager', {}],
    ['the storage manager can do nothing', { storage: {} }],
    [
      'the page may not ask',
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
  ])('are unknown where %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator)
    const unknown = { usedBytes: undefined, quotaBytes: undefined, persisted: undefined }
    expect(await indexedDb('a').usage()).toEqual(unknown)
    expect(await indexedDb('a').persist()).toBe(false)
  })
})

describe('lowSpace$', () => {
  it('tells at once when space is low already', async () => {
    browser({ usage: 80 * MIB })
    const { usages } = listen(new SpaceWatch(0.8))
    await settled()
    const usage = { usedBytes: 80 * MIB, quotaBytes: 100 * MIB, persisted: false }
    expect(usages).toEqual([{ ...usage, isFull: false, writtenBytes: 0 }])
  })

  it('tells once enough was written that it is worth a look, and looks more often the less is left', async () => {
    const told = browser({ usage: 40 * MIB })
    const watch = new SpaceWatch(0.8)
    const { usages } = listen(watch)
    await settled()
    expect(told.measurements).toBe(1)
    let looks = 1
    while (usages.length === 0) {
      expect(told.usage).toBeLessThan(81 * MIB)
      told.usage += 100_000
      watch.wrote(100_000)
      await settled()
      looks++
    }
    expect(usages[0]!.usedBytes).toBeLessThan(81 * MIB)
    expect(told.measurements).toBeLessThan(looks / 10)
  })

  it('goes on telling while space is low, and stops when it is not', async () => {
    const told = browser({ usage: 90 * MIB })
    const watch = new SpaceWatch(0.8)
    const { usages } = listen(watch)
    await settled()
    watch.wrote(20 * MIB)
    await settled()
    expect(usages.length).toBe(2)
    told.usage = 10 * MIB
    watch.wrote(20 * MIB)
    await settled()
    expect(usages.length).toBe(2)
    expect(told.measurements).toBe(3)
  })

  it('measures nothing while nobody listens', async () => {
    const told = browser({ usage: 90 * MIB })
    const watch = new SpaceWatch(0.8)
    watch.wrote(100 * MIB)
    watch.full()
    const { subscription } = listen(watch)
    subscription.unsubscribe()
    await settled()
    const { measurements } = told
    watch.wrote(100 * MIB)
    watch.full()
    await settled()
    expect(told.measurements).toBe(measurements)
  })

  it('tells when an append found no space, whatever the browser estimates, once for many', async () => {
    browser({ usage: 1 * MIB })
    const watch = new SpaceWatch(0.8)
    const { usages } = listen(watch)
    await settled()
    for (let i = 0; i < 10; i++) watch.full()
    await settled()
    expect(usages.map(({ usedBytes, isFull }) => [usedBytes, isFull])).toEqual([[1 * MIB, true]])
  })

  it('tells nothing where the browser tells nothing', async () => {
    vi.stubGlobal('navigator', {})
    const watch = new SpaceWatch(0.8)
    const { usages } = listen(watch)
    watch.wrote(100 * MIB)
    await settled()
    expect(usages).toEqual([])
  })

  it('hears of what sessions append', async () => {
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

  it.each([0, -1, 1.1, Number.NaN])('a share of %d makes no sense', (lowSpaceShare) => {
    expect(() => indexedDb('a', { lowSpaceShare })).toThrow(RangeError)
  })

  it('costs nothing before it is used', async () => {
    const told = browser()
    const hw = await open({ storage: indexedDb('unused') })
    await hw.basin('b').stream('s').append('x')
    await hw.close()
    expect(told.measurements).toBe(0)
  })
})

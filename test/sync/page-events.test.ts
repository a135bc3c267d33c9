import { afterEach, expect, test, vi } from 'vitest'
import { browserWakeUps } from '../../adapters/sync/page-events.ts'

afterEach(() => vi.unstubAllGlobals())

test('the network of a browser wakes when it is back, and is lost at once', () => {
  const page = new EventTarget()
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
  vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page))
  const events: string[] = []
  const ignore = browserWakeUps(
    () => events.push('wake'),
    () => events.push('lose'),
  )
  const fire = (...types: string[]) => {
    for (const type of types) page.dispatchEvent(new Event(type))
  }
  fire('offline', 'online')
  ignore()
  fire('offline', 'online')
  expect(events).toEqual(['lose', 'wake'])
})

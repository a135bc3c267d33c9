// @module-tag slow

import { expect, it } from 'vitest'
import type * as RoomsPage from '../pages/rooms.ts'
import { inChromium, scriptIn, startService } from '../support.ts'

inChromium('a synced basin in two tabs', (browser) => {
  it('has one connection for both, in the tab that has used its stream last', async () => {
    const service = await startService()
    const basin = service.hw.basin('my-first-app')
    for (const name of 'ab') await basin.stream(`rooms/${name}`).append(`in ${name}`)
    const openTab = async () => {
      const tab = await scriptIn<typeof RoomsPage>(await browser.page(), 'rooms')
      await tab.start(service.url, 'rooms')
      return tab
    }
    const [one, other] = [await openTab(), await openTab()]
    await one.open('a')
    await expect.poll(one.kinds).toEqual({ a: 'live', b: 'waiting' })
    await other.open('b')
    await expect.poll(async () => (await other.kinds()).b).toBe('live')
    await expect.poll(async () => (await one.kinds()).a).toBe('waiting')

    // Found by a visit, whichever tab lists the streams.
    await basin.stream('rooms/a').append('news')
    await expect.poll(() => one.bodies('a')).toEqual(['in a', 'news'])
    await one.append('a', 'mine')
    await expect.poll(() => one.bodies('a')).toEqual(['in a', 'news', 'mine'])
    await expect.poll(async () => (await one.kinds()).a).toBe('live')
    expect(service.open().openReads).toBeLessThanOrEqual(1)

    await one.close()
    await expect.poll(async () => (await other.kinds()).b).toBe('live')
    await other.close()
    await service.idle()
  })
})

import { describe, expect, it } from 'vitest'
import type { Variant } from '../bundle.ts'
import type * as Client from '../pages/client.ts'
import { inChromium, scriptIn, startService } from '../support.ts'

const BASIN = 'my-first-app'
const ROOT_TOKEN = 'root-token-of-a-test'

async function startWithToken() {
  const service = await startService({ auth: 'token' })
  await service.hw.setRootToken(ROOT_TOKEN)
  return service
}

inChromium('headwater/client in a page of another origin', (browser) => {
  describe.each<Variant>(['sources', 'package'])('from the %s', (variant) => {
    const load = async () => scriptIn<typeof Client>(await browser.page(), 'client', variant)

    it('appends, produces and reads', async () => {
      const service = await startWithToken()
      const { use } = await load()
      expect(await use(service.url, ROOT_TOKEN, BASIN)).toEqual({
        produced: [2, 3],
        stored: ['one', 'two', 'a', 'b'],
        bytes: [[0, 255]],
        error: ['seq_num_mismatch', 5],
      })
      await service.idle()
    })

    it('follows live records, also after the connection is dropped', async () => {
      const service = await startWithToken()
      const stream = service.hw.basin(BASIN).stream('s')
      await stream.append('history')
      const { follow, received } = await load()
      await follow(service.url, ROOT_TOKEN, BASIN)
      await expect.poll(received).toEqual(['history'])
      await stream.append('live')
      await expect.poll(received).toEqual(['history', 'live'])
      await service.restart()
      await stream.append('after the restart')
      await expect.poll(received).toEqual(['history', 'live', 'after the restart'])
    })
  })
})

// @module-tag slow

import { expect, it } from 'vitest'
import type * as Client from '../pages/durable-streams-client.ts'
import type * as Controlled from '../pages/service-worker-client.ts'
import { serviceWorkersOf } from '../service-workers.ts'
import { inChromium, scriptIn } from '../support.ts'

inChromium('the published client of Durable Streams in a page', (browser) => {
  async function controlledPage() {
    const page = await browser.page()
    const { control } = await scriptIn<typeof Controlled>(page, 'service-worker-client')
    await control()
    return { page, client: await scriptIn<typeof Client>(page, 'durable-streams-client') }
  }
  const urlOf = (name: string) => `${browser.origin}/durable/v1/stream/${name}`

  it('uses the engine of a service worker', async () => {
    const { client } = await controlledPage()
    const url = urlOf('chats/1')
    await client.create(url)
    await client.append(url, [1, 2, 3])
    expect(await client.read(url)).toEqual([1, 2, 3])
  })

  it.each(['sse', 'long-poll'] as const)('follows by %s what another page appends', async (live) => {
    const [{ client: reader }, { client: writer }] = [await controlledPage(), await controlledPage()]
    const url = urlOf(live)
    await writer.create(url)
    await writer.append(url, [1, 2])
    await reader.follow(url, live)
    await expect.poll(reader.followed).toEqual([1, 2])
    await writer.append(url, [3])
    await expect.poll(reader.followed).toEqual([1, 2, 3])
  })

  it('finds everything again after the browser stopped the service worker', async () => {
    const { page, client } = await controlledPage()
    const url = urlOf('kept')
    await client.create(url)
    await client.append(url, [1])
    await (await serviceWorkersOf(page)).stop()
    await client.append(url, [2])
    expect(await client.read(url)).toEqual([1, 2])
  })
})

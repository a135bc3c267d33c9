import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { clientOf, freshName, serviceOfFile } from './support.ts'

const clock = virtualClock()
const { server, hw } = await serviceOfFile({ clock })
const s2 = clientOf(server.url)

const CONFIG = {
  createStreamOnAppend: true,
  createStreamOnRead: false,
  defaultStreamConfig: {
    storageClass: 'standard',
    retentionPolicy: { ageSecs: 3_600 },
    timestamping: { mode: 'arrival', uncapped: true },
    deleteOnEmpty: { minAgeSecs: 60 },
  },
} as const

async function names(pages: AsyncIterable<{ name: string }>): Promise<string[]> {
  const found: string[] = []
  for await (const { name } of pages) found.push(name)
  return found
}

describe('basins', () => {
  it('ensures a basin: created, unchanged, updated', async () => {
    const basin = freshName('basin')
    const first = await s2.basins.ensure({ basin })
    expect(first).toMatchObject({ result: 'created', basin: { name: basin } })
    expect((await s2.basins.ensure({ basin })).result).toBe('noop')
    const updated = await s2.basins.ensure({ basin, config: CONFIG })
    expect(updated).toEqual({ result: 'updated', basin: first.basin })
    expect((await s2.basins.ensure({ basin, config: CONFIG })).result).toBe('noop')
    expect(await s2.basins.getConfig({ basin })).toMatchObject(CONFIG)
  })

  it('reconfigures: absent keeps, null clears, a value replaces', async () => {
    const basin = freshName('basin')
    await s2.basins.create({ basin, config: CONFIG })
    const whole = await s2.basins.reconfigure({
      basin,
      createStreamOnRead: true,
      defaultStreamConfig: { storageClass: null, retentionPolicy: { infinite: {} } },
    })
    expect(whole).toMatchObject({ createStreamOnAppend: true, createStreamOnRead: true })
    expect(whole.defaultStreamConfig).toMatchObject({
      retentionPolicy: { infinite: {} },
      timestamping: { mode: 'arrival', uncapped: true },
    })
    expect(whole.defaultStreamConfig?.storageClass).toBe('express')
    expect(await s2.basins.getConfig({ basin })).toEqual(whole)
  })

  it('lists by prefix, page by page', async () => {
    const created = ['listed-one', 'listed-three', 'listed-two', 'listed-zero']
    for (const basin of created) await s2.basins.create({ basin })
    const first = await s2.basins.list({ prefix: 'listed-', limit: 3 })
    expect(first.hasMore).toBe(true)
    expect(first.basins.map(({ name }) => name)).toEqual(created.slice(0, 3))
    const page = await s2.basins.list({ prefix: 'listed-', startAfter: 'listed-three' })
    expect(page.hasMore).toBe(false)
    expect(page.basins.map(({ name }) => name)).toEqual(created.slice(2))
    expect(await names(s2.basins.listAll({ prefix: 'listed-', limit: 1 }))).toEqual(created)
    expect((await s2.basins.list({ prefix: 'nothing-like-it' })).basins).toEqual([])
  })

  it('treats a repeated creation as the same', async () => {
    const basin = freshName('basin')
    const repeated = await withLostResponse(() => s2.basins.create({ basin }))
    expect(repeated.requests).toBe(2)
    expect(repeated.result.name).toBe(basin)
    await hw.createBasin('streams-repeated')
    const stream = await withLostResponse(() => s2.basin('streams-repeated').streams.create({ stream: 's' }))
    expect(stream).toMatchObject({ requests: 2, result: { name: 's' } })
  })
})

/** Runs a call whose first response is lost on its way to the client. */
async function withLostResponse<Result>(call: () => Promise<Result>) {
  const { fetch } = globalThis
  let requests = 0
  globalThis.fetch = async (...args) => {
    const response = await fetch(...args)
    if (++requests > 1) return response
    await response.arrayBuffer()
    throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
  }
  try {
    return { result: await call(), requests }
  } finally {
    globalThis.fetch = fetch
  }
}

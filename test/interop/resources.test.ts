import { describe, expect, it } from 'vitest'
import { bodies, strings } from './records.ts'
import { clientOf, FETCH, freshName, S2S, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()
const s2 = clientOf(server.url)

/** A name with all characters that a URL must preserve. */
const DIFFICULT_NAME = 'a/b c?d=e&f#g%2Fh:ü☃+..;\\"'

const STREAM_CONFIG = {
  storageClass: 'standard',
  retentionPolicy: { ageSecs: 3_600 },
  timestamping: { mode: 'arrival', uncapped: true },
  deleteOnEmpty: { minAgeSecs: 60 },
} as const
const BASIN_CONFIG = {
  createStreamOnAppend: true,
  createStreamOnRead: false,
  defaultStreamConfig: STREAM_CONFIG,
}

async function namesOf(pages: AsyncIterable<{ readonly name: string }>): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of pages) names.push(name)
  return names
}

describe('basins', () => {
  it('are ensured and reconfigured: absent keeps, null clears', async () => {
    const basin = freshName('basin')
    const first = await s2.basins.ensure({ basin })
    expect(first).toMatchObject({ result: 'created', basin: { name: basin } })
    const config = BASIN_CONFIG
    expect(await s2.basins.ensure({ basin, config })).toEqual({ result: 'updated', basin: first.basin })
    expect((await s2.basins.ensure({ basin, config })).result).toBe('noop')
    expect(await s2.basins.getConfig({ basin })).toMatchObject(config)
    const defaultStreamConfig = { storageClass: null, retentionPolicy: { infinite: {} } }
    const whole = await s2.basins.reconfigure({ basin, createStreamOnRead: true, defaultStreamConfig })
    expect(whole).toMatchObject({
      createStreamOnAppend: true,
      createStreamOnRead: true,
      defaultStreamConfig: {
        ...STREAM_CONFIG,
        storageClass: 'express',
        retentionPolicy: { infinite: {} },
      },
    })
    expect(await s2.basins.getConfig({ basin })).toEqual(whole)
  })

  it('are listed by prefix, page by page', async () => {
    const created = ['listed-one', 'listed-three', 'listed-two', 'listed-zero']
    for (const basin of created) await s2.basins.create({ basin })
    expect(await s2.basins.list({ prefix: 'listed-', limit: 3 })).toMatchObject({ hasMore: true })
    expect(await namesOf(s2.basins.listAll({ prefix: 'listed-', limit: 1 }))).toEqual(created)
  })

  it('are created once although the response is lost', async () => {
    const { fetch } = globalThis
    let requests = 0
    globalThis.fetch = async (...args) => {
      const response = await fetch(...args)
      if (++requests > 1) return response
      await response.arrayBuffer()
      throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
    }
    const basin = freshName('basin')
    const { name } = await s2.basins.create({ basin }).finally(() => {
      globalThis.fetch = fetch
    })
    expect([name, requests]).toEqual([basin, 2])
  })
})

describe('streams', () => {
  async function newBasin(options = {}) {
    const basin = freshName('basin')
    await s2.basins.create({ basin })
    return clientOf(server.url, options).basin(basin)
  }

  it('are created with the defaults, ensured, and listed', async () => {
    const { streams } = await newBasin()
    const info = await streams.create({ stream: 's' })
    expect(info).toEqual({ name: 's', createdAt: expect.any(Date), deletedAt: null, cipher: null })
    expect(await streams.getConfig({ stream: 's' })).toMatchObject({
      storageClass: 'express',
      retentionPolicy: { ageSecs: 604_800 },
      timestamping: { mode: 'client-prefer', uncapped: false },
    })
    const exists = { status: 409, code: 'resource_already_exists' }
    await expect(streams.create({ stream: 's' })).rejects.toMatchObject(exists)
    const config = STREAM_CONFIG
    expect(await streams.ensure({ stream: 's', config })).toEqual({ result: 'updated', stream: info })
    expect(await streams.getConfig({ stream: 's' })).toMatchObject(config)
    for (const stream of ['a/1', 'a/2', 'a/3']) await streams.create({ stream })
    const page = await streams.list({ prefix: 'a/', startAfter: 'a/1', limit: 1 })
    expect([page.hasMore, page.streams.map(({ name }) => name)]).toEqual([true, ['a/2']])
    expect(await namesOf(streams.listAll({ limit: 2 }))).toEqual(['a/1', 'a/2', 'a/3', 's'])
  })

  it.each([FETCH, S2S])('may have a difficult name, by $name', async ({ force, options }) => {
    const basin = await newBasin(options)
    const stream = DIFFICULT_NAME
    await basin.streams.create({ stream })
    expect(await basin.streams.reconfigure({ stream, storageClass: 'standard' })).toMatchObject({
      storageClass: 'standard',
    })
    await using handle = basin.stream(stream, { forceTransport: force })
    await using session = await handle.appendSession()
    await (await session.submit(strings('x'))).ack()
    const { records } = await handle.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['x'])
    const stop = { limits: { count: 1 } }
    const read = await handle.readSession({ start: { from: { seqNum: 0 } }, stop })
    for await (const { body } of read) expect(body).toBe('x')
    await basin.streams.delete({ stream })
    await expect(handle.checkTail()).rejects.toMatchObject({ status: 404, code: 'stream_not_found' })
  })
})

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

async function namesOf(pages: AsyncIterable<{ readonly name: string }>): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of pages) names.push(name)
  return names
}

describe('basins', () => {
  it('are ensured and reconfigured', async () => {
    const basin = freshName('basin')
    const config = {
      createStreamOnAppend: true,
      createStreamOnRead: false,
      defaultStreamConfig: STREAM_CONFIG,
    }
    const first = await s2.basins.ensure({ basin })
    expect(first).toMatchObject({ result: 'created', basin: { name: basin } })
    expect(await s2.basins.ensure({ basin, config })).toEqual({ result: 'updated', basin: first.basin })
    expect((await s2.basins.ensure({ basin, config })).result).toBe('noop')
    expect(await s2.basins.getConfig({ basin })).toMatchObject(config)
    const defaultStreamConfig = { storageClass: null, retentionPolicy: { infinite: {} } }
    expect(await s2.basins.reconfigure({ basin, defaultStreamConfig })).toMatchObject({
      ...config,
      defaultStreamConfig: { ...STREAM_CONFIG, ...defaultStreamConfig, storageClass: 'express' },
    })
  })

  it('are listed by prefix, page by page', async () => {
    const created = ['listed-one', 'listed-three', 'listed-two']
    for (const basin of created) await s2.basins.create({ basin })
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
  it('are created, ensured and listed', async () => {
    const basin = freshName('basin')
    await s2.basins.create({ basin })
    const { streams } = s2.basin(basin)
    const info = await streams.create({ stream: 's' })
    expect(info).toEqual({ name: 's', createdAt: expect.any(Date), deletedAt: null, cipher: null })
    const exists = { status: 409, code: 'resource_already_exists' }
    await expect(streams.create({ stream: 's' })).rejects.toMatchObject(exists)
    const config = STREAM_CONFIG
    expect(await streams.ensure({ stream: 's', config })).toEqual({ result: 'updated', stream: info })
    expect(await streams.getConfig({ stream: 's' })).toMatchObject(config)
    for (const stream of ['a/1', 'a/2', 'a/3']) await streams.create({ stream })
    const page = await streams.list({ prefix: 'a/', startAfter: 'a/1', limit: 1 })
    expect([page.hasMore, page.streams.map(({ name }) => name)]).toEqual([true, ['a/2']])
  })

  it.each([FETCH, S2S])('may have a difficult name, by $name', async ({ force, options }) => {
    const name = freshName('basin')
    await s2.basins.create({ basin: name })
    const basin = clientOf(server.url, options).basin(name)
    const stream = DIFFICULT_NAME
    await basin.streams.create({ stream })
    const change = { storageClass: 'standard' } as const
    expect(await basin.streams.reconfigure({ stream, ...change })).toMatchObject(change)
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

it('there is one location, the default', async () => {
  const here = { name: 'aws:us-east-1', isPrivate: false }
  expect(await s2.locations.list()).toMatchObject([here])
  expect(await s2.locations.getDefault()).toMatchObject(here)
  expect(await s2.locations.setDefault({ location: 'aws:us-east-1' })).toMatchObject(here)
  const elsewhere = s2.locations.setDefault({ location: 'aws:eu-north-1' })
  await expect(elsewhere).rejects.toMatchObject({ status: 422, code: 'invalid' })
})

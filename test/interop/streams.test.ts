import { describe, expect, it } from 'vitest'
import { bodies, strings } from './records.ts'
import { clientOf, FETCH, freshName, S2S, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()
const s2 = clientOf(server.url)

/** A name with all characters that a URL must preserve. */
const DIFFICULT_NAME = 'a/b c?d=e&f#g%2Fh:ü☃+..;\\"'

async function newBasin(config = {}) {
  const basin = freshName('basin')
  await s2.basins.create({ basin, config })
  return s2.basin(basin)
}

describe('streams', () => {
  it('creates a stream once, with the defaults', async () => {
    const { streams } = await newBasin()
    const info = await streams.create({ stream: 's' })
    expect(info).toMatchObject({ name: 's', deletedAt: null, cipher: null })
    expect(info.createdAt).toBeInstanceOf(Date)
    expect(await streams.getConfig({ stream: 's' })).toMatchObject({
      storageClass: 'express',
      retentionPolicy: { ageSecs: 604_800 },
      timestamping: { mode: 'client-prefer', uncapped: false },
    })
    await expect(streams.create({ stream: 's' })).rejects.toMatchObject({
      status: 409,
      code: 'resource_already_exists',
    })
  })

  it('ensures a stream: created, unchanged, updated', async () => {
    const { streams } = await newBasin()
    const config = { deleteOnEmpty: { minAgeSecs: 10 }, timestamping: { uncapped: true } }
    const first = await streams.ensure({ stream: 's' })
    expect(first).toMatchObject({ result: 'created', stream: { name: 's' } })
    expect(await streams.ensure({ stream: 's' })).toEqual({ ...first, result: 'noop' })
    expect(await streams.ensure({ stream: 's', config })).toEqual({ ...first, result: 'updated' })
    expect(await streams.getConfig({ stream: 's' })).toMatchObject(config)
  })

  it('lists by prefix, page by page', async () => {
    const { streams } = await newBasin()
    const created = ['a/1', 'a/2', 'a/3', 'b/1']
    for (const stream of created) await streams.create({ stream })
    const page = await streams.list({ prefix: 'a/', startAfter: 'a/1', limit: 1 })
    expect(page.hasMore).toBe(true)
    expect(page.streams.map(({ name }) => name)).toEqual(['a/2'])
    const names: string[] = []
    for await (const { name, createdAt } of streams.listAll({ limit: 2 })) {
      expect(createdAt).toBeInstanceOf(Date)
      names.push(name)
    }
    expect(names).toEqual(created)
  })

  it('deletes a stream, and creates an empty one of the same name', async () => {
    const basin = await newBasin()
    await basin.streams.create({ stream: 's' })
    await basin.stream('s').append(strings('old'))
    await basin.streams.delete({ stream: 's' })
    const gone = { status: 404, code: 'stream_not_found' }
    await expect(basin.stream('s').checkTail()).rejects.toMatchObject(gone)
    await expect(basin.streams.getConfig({ stream: 's' })).rejects.toMatchObject(gone)
    expect((await basin.streams.list()).streams).toEqual([])
    await basin.streams.create({ stream: 's' })
    expect((await basin.stream('s').checkTail()).tail.seqNum).toBe(0)
    expect((await basin.stream('s').append(strings('new'))).start.seqNum).toBe(0)
  })
})

describe.each([FETCH, S2S])('a difficult stream name by $name', ({ force, options }) => {
  it('is one segment of every path', async () => {
    const { name } = await newBasin()
    const basin = clientOf(server.url, options).basin(name)
    await basin.streams.create({ stream: DIFFICULT_NAME })
    await basin.streams.reconfigure({ stream: DIFFICULT_NAME, storageClass: 'standard' })
    expect(await basin.streams.getConfig({ stream: DIFFICULT_NAME })).toMatchObject({
      storageClass: 'standard',
    })
    expect((await basin.streams.list()).streams.map(({ name }) => name)).toEqual([DIFFICULT_NAME])
    await using stream = basin.stream(DIFFICULT_NAME, { forceTransport: force })
    await using session = await stream.appendSession()
    await (await session.submit(strings('x'))).ack()
    expect((await stream.checkTail()).tail.seqNum).toBe(1)
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['x'])
    for await (const { body } of await stream.readSession({
      start: { from: { seqNum: 0 } },
      stop: { limits: { count: 1 } },
    }))
      expect(body).toBe('x')
    await basin.streams.delete({ stream: DIFFICULT_NAME })
  })
})

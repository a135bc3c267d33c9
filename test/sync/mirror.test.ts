import { describe, expect, it } from 'vitest'
import { closeRecord, fenceRecord, trimRecord } from '../../src/index.ts'
import { contentOf, kindsOf, openBoth, until } from './mirrored.ts'

describe('a mirror', () => {
  it('copies everything and then follows live', async () => {
    const { origin, local, start, clock } = await openBoth()
    for (let i = 0; i < 5; i++) await origin.append(['a', { body: 'b', headers: [['k', 'v']], timestamp: 7 }])
    const copy = start()
    const kinds = kindsOf(copy)
    await until(copy, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    await origin.append('live')
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    expect(kinds).toEqual(['connecting', 'catching-up', 'live'])
  })

  it('is live on an empty stream', async () => {
    const { origin, local, start, clock, server } = await openBoth()
    await server.hw
      .basin('basin')
      .ensureStream('stream')
      .catch(() => {})
    await server.hw.ensureBasin('basin')
    await server.hw.basin('basin').ensureStream('stream')
    const copy = start()
    await until(copy, 'live', clock)
    await origin.append('first')
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })

  it('applies trims and fences to the copy', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(['a', 'b', 'c', fenceRecord('f'), trimRecord(2)])
    const copy = start()
    await until(copy, 'live', clock)
    expect((await contentOf(local)).records.map(({ seqNum }) => seqNum)).toEqual([2, 3, 4])
    await origin.trim(4)
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    await expect(local.append({ body: 'x', timestamp: 1 }, { fencingToken: 'g' })).rejects.toMatchObject({
      fencingToken: 'f',
    })
  })

  it('closes the copy with the stream, and opens no further connection', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append('a')
    const copy = start()
    const kinds = kindsOf(copy)
    await until(copy, 'live', clock)
    await origin.append(['b', closeRecord()])
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    expect((await local.checkTail()).closed).toBe(true)
    await clock.advance(600_000)
    expect(kinds).toEqual(['connecting', 'catching-up', 'live'])
  })
})

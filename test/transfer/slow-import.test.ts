import { expect, it } from 'vitest'
import { exported, imported, type Place, place } from './support.ts'

async function withStream(): Promise<Place> {
  const made = await place()
  await made.hw.createBasin('basin-a')
  await made.hw.basin('basin-a').createStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
  return made
}
const thousand = Array.from({ length: 1000 }, (_, i) => `${i}`)

it('a slow import is not interrupted by delete-on-empty', async () => {
  const source = await withStream()
  await source.hw.basin('basin-a').stream('s').append(thousand)
  const text = await exported(source.service)
  const target = await place({
    clock: source.clock,
    around: (fetch) => async (request) => {
      if (request.method === 'POST') await source.clock.advance('3h')
      return fetch(request)
    },
  })
  await imported(target.service, text)
  expect(await target.hw.basin('basin-a').stream('s').checkTail()).toMatchObject({ seqNum: 1000 })
  expect((await target.hw.basin('basin-a').streamConfig('s')).deleteOnEmpty).toEqual({ minAgeSeconds: 60 })
})

it('an import reports its progress', async () => {
  const source = await withStream()
  for (let i = 0; i < 3; i++) await source.hw.basin('basin-a').stream('s').append(thousand)
  const told: unknown[] = []
  const onProgress = (counts: object, stream: string | undefined) => told.push({ ...counts, stream })
  const target = await place()
  await imported(target.service, await exported(source.service), { onProgress })
  expect(told.length).toBeGreaterThan(20)
  expect(told).toContainEqual(expect.objectContaining({ basins: 1, streams: 0, stream: 's' }))
  const records = told.map((one) => (one as { records: number }).records)
  expect(records).toEqual(records.toSorted((a, b) => a - b))
  expect(new Set(records).size).toBeGreaterThan(20)
  expect(told.at(-1)).toEqual({ basins: 1, streams: 1, records: 3000, stream: undefined })
})

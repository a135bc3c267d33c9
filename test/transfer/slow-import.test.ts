import { expect, it } from 'vitest'
import { type Endpoint, exported, imported, openEndpoint } from './support.ts'

async function withStream(): Promise<Endpoint> {
  const endpoint = await openEndpoint()
  await endpoint.hw.createBasin('basin-a')
  await endpoint.hw.basin('basin-a').createStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
  return endpoint
}
const BODIES = Array.from({ length: 1000 }, (_, i) => `${i}`)

it('a slow import is not interrupted by delete-on-empty', async () => {
  const source = await withStream()
  await source.hw.basin('basin-a').stream('s').append(BODIES)
  const text = await exported(source.service)
  const target = await openEndpoint({
    clock: source.clock,
    wrapFetch: (fetch) => async (request) => {
      if (request.method === 'POST') await source.clock.advance('3h')
      return fetch(request)
    },
  })
  await imported(target.service, text)
  expect(await target.hw.basin('basin-a').stream('s').checkTail()).toMatchObject({ seqNum: 1000 })
  expect((await target.hw.basin('basin-a').stream('s').config()).deleteOnEmpty).toEqual({ minAgeSeconds: 60 })
})

it('an import reports its progress', async () => {
  const source = await withStream()
  for (let i = 0; i < 3; i++) await source.hw.basin('basin-a').stream('s').append(BODIES)
  const progress: unknown[] = []
  const onProgress = (counts: object, stream: string | undefined) => progress.push({ ...counts, stream })
  const target = await openEndpoint()
  await imported(target.service, await exported(source.service), { onProgress })
  expect(progress.length).toBeGreaterThan(20)
  expect(progress).toContainEqual(expect.objectContaining({ basins: 1, streams: 0, stream: 's' }))
  const records = progress.map((counts) => (counts as { records: number }).records)
  expect(records).toEqual(records.toSorted((a, b) => a - b))
  expect(new Set(records).size).toBeGreaterThan(20)
  expect(progress.at(-1)).toEqual({ basins: 1, streams: 1, records: 3000, stream: undefined })
})

import { expect, it } from 'vitest'
import { exportLines } from '../../adapters/transfer/export-lines.ts'
import { EVERYTHING } from '../../adapters/transfer/name-filter.ts'
import { fenceRecord } from '../../src/index.ts'
import { exported, imported, NOW, type Place, place } from './support.ts'

async function withStream(): Promise<Place> {
  const made = await place()
  await made.hw.createBasin('basin-a')
  await made.hw.basin('basin-a').createStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
  return made
}
const thousand = Array.from({ length: 1000 }, (_, i) => `${i}`)

it('an import that takes its time is not overtaken by the deletion of empty streams', async () => {
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

it('an export notices that its stream was made anew under way, and does not take the rest for expired', async () => {
  const { hw, service } = await withStream()
  const basin = hw.basin('basin-a')
  for (let i = 0; i < 4; i++) await basin.stream('s').append(thousand)
  const reading = (async () => {
    for await (const { records } of exportLines(service, EVERYTHING, NOW)) {
      if (records === 0) continue
      await basin.deleteStream('s').catch(() => {})
      await basin.createStream('s')
    }
  })()
  await expect(reading).rejects.toThrow('stream s of basin basin-a is not what it was when its export began')
})

it('the fencing token of an export is that at its tail', async () => {
  let asked = 0
  const made = await place({
    around: (fetch) => async (request) => {
      const answer = await fetch(request)
      // Behind the first look at the tail, before the question for the token.
      if (request.url.endsWith('/records/tail') && asked++ === 0) {
        await made.hw
          .basin('basin-a')
          .stream('s')
          .append([fenceRecord('new')])
      }
      return answer
    },
  })
  await made.hw.createBasin('basin-a')
  await made.hw.basin('basin-a').createStream('s')
  await made.hw.basin('basin-a').stream('s').append(['x'])
  const stream = JSON.parse((await exported(made.service)).split('\n')[2]!)
  expect(stream).toMatchObject({ tail: { seq_num: 2 }, fencing_token: 'new' })
})

it('an import tells how far it has come', async () => {
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

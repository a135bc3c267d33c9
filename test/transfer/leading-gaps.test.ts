import { describe, expect, it } from 'vitest'
import { type Gap, gapRecords, isTrimmed } from '../../adapters/transfer/gap-records.ts'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { contentOf, exported, imported, type Kind, openEndpoint } from './support.ts'

const GAP: Gap = {
  from: { seqNum: 0, timestamp: 3 },
  to: 1,
  lastTimestamp: 7,
  fencingToken: undefined,
  isLeading: true,
}

describe('gap records', () => {
  it.each([1, 2, 3, 999, 1000, 1001, 1002, 1999, 2000, 2001, 2002])(
    'for %i positions before the first record set the token and trim in one append',
    (to) => {
      for (const fencingToken of ['', 'me', undefined]) {
        const gap = { ...GAP, to, fencingToken }
        const batches = [...gapRecords(gap)]
        expect(batches.every(({ length }) => length >= 1 && length <= 1000)).toBe(true)
        const records = batches.flat()
        expect(records.map(({ seqNum }) => seqNum)).toEqual([...Array(to).keys()])
        expect(records.at(-1)!.timestamp).toBe(7)
        const commands = records.filter(({ headers }) => headers.length > 0)
        const inLast = batches.at(-1)!.filter(({ headers }) => headers.length > 0)
        const trims = isTrimmed(gap)
        expect(trims).toBe(fencingToken === undefined || to > 1)
        expect(commands).toMatchObject([
          ...(fencingToken === undefined ? [] : [fenceRecord(fencingToken)]),
          ...(trims ? [trimRecord(to)] : []),
        ])
        expect(inLast).toEqual(commands)
      }
    },
  )
})

/** A stream whose first records have expired: 1,000 and `more`. */
async function beginningAt1001(token: string): Promise<string> {
  const { hw, clock, service } = await openEndpoint()
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  await basin.createStream('s', { retentionPolicy: { ageSeconds: 1 } })
  await basin.stream('s').append(Array.from({ length: 1000 }, () => 'x'))
  await basin.stream('s').append([fenceRecord(token)])
  await basin.stream('s').reconfigure({ retentionPolicy: 'infinite' })
  await basin.stream('s').append('kept')
  await clock.advance('5s')
  return exported(service)
}

describe('an import of a stream that does not begin at 0', () => {
  it.each(['', 'me'])('has no records before its start after an interruption: token %j', async (token) => {
    const text = await beginningAt1001(token)
    expect(text).toContain('"start":1001')
    for (let appends = 0; appends < 3; appends++) {
      let left = appends
      const target = await openEndpoint({
        wrapFetch: (fetch) => async (request) => {
          if (request.method === 'POST' && left-- <= 0) throw new Error('cut')
          return fetch(request)
        },
      })
      await expect(imported(target.service, text)).rejects.toThrow('cut')
      left = Number.POSITIVE_INFINITY
      await imported(target.service, text, { resume: true })
      await target.clock.advance('5s')
      expect(contentOf(await exported(target.service)), `${appends}`).toBe(contentOf(text))
    }
  })

  it.each<[Kind, number]>([
    ['server', 1],
    ['server', 2],
    ['server', 1000],
    ['server', 1001],
    ['directory', 1],
    ['directory', 1001],
  ])('into a %s contains no state that its source had %i records ago', async (kind, more) => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a')
    const basin = source.hw.basin('basin-a')
    await basin.createStream('s', { retentionPolicy: { ageSeconds: 5 } })
    await basin.stream('s').append(Array.from({ length: 10 }, (_, i) => `old ${i}`))
    const target = await openEndpoint({ kind })
    await imported(target.service, await exported(source.service))
    for (let left = more; left > 0; left -= 1000)
      await basin.stream('s').append(Array.from({ length: Math.min(left, 1000) }, () => 'x'))
    await source.clock.advance('10s')
    await basin.stream('s').append('kept')
    const later = await exported(source.service)
    await imported(target.service, later, { resume: true })
    expect(contentOf(await exported(target.service))).toBe(contentOf(later))
  })

  it('is rejected if one position would need both a fence and a trim', async () => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a')
    const basin = source.hw.basin('basin-a')
    await basin.createStream('s', { retentionPolicy: { ageSeconds: 5 } })
    await basin.stream('s').append(['old', 'old'])
    const target = await openEndpoint()
    await imported(target.service, await exported(source.service))
    await basin.stream('s').append([fenceRecord('me')])
    await source.clock.advance('10s')
    await basin.stream('s').append('kept')
    const rejection = expect(imported(target.service, await exported(source.service), { resume: true }))
    await rejection.rejects.toThrow('position 2 cannot contain both a fence and a trim')
    expect((await target.hw.basin('basin-a').stream('s').checkTail()).seqNum).toBe(2)
  })
})

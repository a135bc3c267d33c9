import { describe, expect, it } from 'vitest'
import { openEngine } from '../../support/index.ts'

describe('a read session in a format', () => {
  it('iterates records with bytes on request, also those that are no UTF-8', async () => {
    const engine = await openEngine()
    const body = new Uint8Array([0xff, 0])
    await engine.stream.append(body)
    const [record] = (await engine.stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records
    expect(record!.body).toEqual(body)
    for await (const { body: read } of engine.stream.read({ seqNum: 0, count: 1 }, { as: 'bytes' })) {
      expect(read).toEqual(body)
    }
    expect((await engine.stream.readBatch({ seqNum: 0 })).records[0]!.body).toBe('\ufffd\0')
  })

  it('delivers records in order to calls of next that overlap, and nothing after return', async () => {
    const engine = await openEngine()
    await engine.stream.append(['a', 'b'])
    await engine.stream.append('c')
    const iterator = engine.stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    const results = await Promise.all([iterator.next(), iterator.next(), iterator.next()])
    expect(results.map(({ value }) => value?.body)).toEqual(['a', 'b', 'c'])
    const waiting = iterator.next()
    await iterator.return()
    expect([await waiting, await iterator.next()]).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ])
    expect(engine.hw.stats().openReads).toBe(0)
  })
})

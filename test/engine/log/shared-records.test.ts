import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { openEngine, type TestEngine } from '../../support/index.ts'

describe('the decoded records of a block', () => {
  let engine: TestEngine
  const ends: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    // A storage whose blocks stay in memory: others read into memory that belongs to one read.
    engine = await openEngine({ storage: memory() })
    await engine.stream.append(['a', 'b', 'c'])
    for (let i = 0; i < 2; i++) await follow(3)
  })

  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
    await engine.hw.close()
  })

  /** Begins to follow. Resolves to the records of the first batch, if there are any to begin with. */
  async function follow(seqNum: number) {
    const batches = engine.stream.follow({ seqNum }).batches()[Symbol.asyncIterator]()
    ends.push(() => batches.return(undefined))
    const first = batches.next()
    await engine.clock.settle()
    return seqNum < 3 ? (await first).value?.records : undefined
  }

  it('are shared by followers that catch up one after another', async () => {
    const records = await follow(0)
    expect(records).toHaveLength(3)
    expect(await follow(0)).toBe(records)
  })

  it('are not kept once the follower that read them ends', async () => {
    const records = await follow(0)
    await ends.pop()!()
    expect(await follow(0)).not.toBe(records)
  })

  it('are not kept for reads that do not follow, beside followers that wait', async () => {
    const { stream } = engine
    const read = async () => (await stream.read().batches().next()).value?.records
    const [first, second] = [await read(), await read()]
    expect(first).toHaveLength(3)
    expect(second).not.toBe(first)
    const [third, fourth] = [await stream.readBatch(), await stream.readBatch()]
    expect(third.records).toHaveLength(3)
    expect(fourth.records).not.toBe(third.records)
  })
})

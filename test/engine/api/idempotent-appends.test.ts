import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { openEngine, outcomeOf, readAll } from '../../support/engine.ts'
import { gated } from '../../support/gated-storage.ts'
import { testStorage } from '../../support/storage.ts'

const batch = (seq: number, epoch = 0, id = 'p') => ({ producer: { id, epoch, seq } })

describe('a batch of a producer', () => {
  it('is stored once', async () => {
    const { stream } = await openEngine()
    const first = await stream.append(['a', 'b'], batch(0))
    expect(first.duplicate).toBeUndefined()
    expect(await stream.append(['a', 'b'], batch(0))).toEqual({ ...first, duplicate: true })
    expect(await readAll(stream)).toEqual(['a', 'b'])
  })

  it('is found stored by an engine that opens the storage later', async () => {
    const storage = testStorage()
    const { stream } = await openEngine({ storage })
    const { start } = await stream.append('a', batch(0))
    const other = await open({ storage })
    const again = await other.basin('basin').stream('stream').append('a', batch(0))
    expect(again).toMatchObject({ start, duplicate: true })
    await other.close()
  })

  it('is checked against the appends before it, awaited or not', async () => {
    const { stream } = await openEngine()
    const outcomes = await Promise.all(
      [
        stream.append('a', batch(0)),
        stream.append('b', batch(1)),
        stream.append('b', batch(1)),
        stream.append('d', batch(3)),
        stream.append('a', batch(0)),
        stream.append('e', batch(0, 1)),
        stream.append('c', batch(2)),
      ].map(outcomeOf),
    )
    expect(outcomes).toEqual(['ok', 'ok', 'ok', 'producer_gap', 'already_appended', 'ok', 'producer_fenced'])
    expect(await readAll(stream)).toEqual(['a', 'b', 'e'])
  })

  it('is acknowledged again only once the first append is durable', async () => {
    const storage = gated(testStorage())
    const { stream } = await openEngine({ storage })
    storage.holding = true
    const first = stream.append('a', batch(0))
    let isAcked = false
    const second = stream.append('a', batch(0)).finally(() => {
      isAcked = true
    })
    await expect.poll(() => storage.held).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(isAcked).toBe(false)
    storage.holding = false
    storage.release()
    expect(await second).toEqual({ ...(await first), duplicate: true })
  })

  it.each([true, false])('is stored once by a retry after a failure that stored it: %s', async (isStored) => {
    const storage = gated(testStorage())
    const { stream } = await openEngine({ storage })
    const fail = () => {
      storage.onAppend = () => {}
      storage.onAppended = () => {}
      throw new StorageFailure('io', 'a failing disk', { nothingWritten: false })
    }
    if (isStored) storage.onAppended = fail
    else storage.onAppend = fail
    const outcomes = await Promise.all([
      outcomeOf(stream.append('a', batch(0))),
      stream.append('a', batch(0)).then(({ duplicate }) => duplicate ?? 'stored'),
    ])
    expect(outcomes).toEqual(['storage', isStored ? true : 'stored'])
    expect(await readAll(stream)).toEqual(['a'])
  })

  it('conflicts with that of another engine without being stored twice', async () => {
    const storage = testStorage()
    const { stream, clock } = await openEngine({ storage })
    const other = await open({ storage, clock })
    const otherStream = other.basin('basin').stream('stream')
    await stream.append('0', batch(0))
    await otherStream.append('0', batch(0))
    const outcomes = await Promise.all([stream.append('1', batch(1)), otherStream.append('1', batch(1))])
    expect(outcomes.filter(({ duplicate }) => duplicate)).toHaveLength(1)
    expect(await readAll(stream)).toEqual(['0', '1'])
    await other.close()
  })

  it('is validated', async () => {
    const { stream } = await openEngine()
    const bad = [
      { id: '', epoch: 0, seq: 0 },
      { id: 'x'.repeat(257), epoch: 0, seq: 0 },
      { id: 'p', epoch: -1, seq: 0 },
      { id: 'p', epoch: 0, seq: 0.5 },
      { id: 'p', epoch: 0 } as never,
      { id: 'p', epoch: 0, seq: 0, other: 1 } as never,
    ]
    for (const producer of bad) {
      await expect(stream.append('x', { producer })).rejects.toMatchObject({ code: 'invalid' })
    }
    for (const streamSeq of ['', 'x'.repeat(257), 1 as never]) {
      await expect(stream.append('x', { streamSeq })).rejects.toMatchObject({ code: 'invalid' })
    }
    const { seqNum } = await stream.checkTail()
    expect(seqNum).toBe(0)
  })
})

import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { gated, openEngine, outcomeOf, readAll, testStorage } from '../../support/index.ts'

/** Both kinds of storage: one that other engines may change, and one that belongs to this engine alone. */
describe.each([true, false])('the append pipeline on a storage with shared: %s', (shared) => {
  const storageOf = () => gated(testStorage(), { shared })

  it('hides appends until they are durable, and acknowledges them in order', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, clock } = engine
    storage.holding = true
    const acks: string[] = []
    const appends = ['a', 'b', 'c'].map((body) =>
      stream.append(body).then((ack) => acks.push(`${body}:${ack.end.seqNum}/${ack.tail.seqNum}`)),
    )
    await clock.settle()
    expect(storage.held).toBe(3)
    expect((await stream.checkTail()).seqNum).toBe(0)
    storage.release(2)
    await clock.settle()
    expect(acks).toEqual(['a:1/2', 'b:2/2'])
    storage.release()
    await Promise.all(appends)
    expect(acks).toEqual(['a:1/2', 'b:2/2', 'c:3/3'])
  })

  it('rejects an append only once the state that it was checked against is durable', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, clock } = engine
    storage.holding = true
    const settled: string[] = []
    const first = stream.append('a').then(() => settled.push('a'))
    const second = stream.append('b', { matchSeqNum: 0 }).catch(() => settled.push('refused'))
    await clock.settle()
    expect(settled).toEqual([])
    storage.release()
    await Promise.all([first, second])
    expect(settled).toEqual(['a', 'refused'])
  })

  it('rechecks a rejection that depended on a failed append', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, clock } = engine
    storage.holding = true
    storage.onAppend = ({ blocks: [block] }) => {
      if (new TextDecoder().decode(block!.data).includes('lost')) {
        throw new StorageFailure('io', 'disk on fire', { nothingWritten: true })
      }
    }
    const outcomes = [
      outcomeOf(stream.append('lost')),
      outcomeOf(stream.append('condition', { matchSeqNum: 0 })),
    ]
    await clock.settle()
    storage.holding = false
    storage.release()
    expect(await Promise.all(outcomes)).toEqual(['storage', 'ok'])
    expect(await readAll(stream)).toEqual(['condition'])
  })

  it('fails the append that the storage failed to write and those after it, then continues', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, clock } = engine
    storage.holding = true
    storage.onAppend = ({ expected }) => {
      if (expected.seqNum === 1) throw new StorageFailure('quota', 'full', { nothingWritten: true })
    }
    const outcomes = ['a', 'b', 'c'].map((body) => outcomeOf(stream.append(body)))
    await clock.settle()
    storage.holding = false
    storage.release()
    expect(await Promise.all(outcomes)).toEqual(['ok', 'storage_full', 'storage_full'])
    storage.onAppend = () => {}
    await stream.append('d')
    expect(await readAll(stream)).toEqual(['a', 'd'])
    expect(engine.hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
  })

  it('shows an append of unknown outcome if the storage has it', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, clock } = engine
    storage.onAppended = () => {
      storage.onAppended = () => {}
      throw new StorageFailure('io', 'connection lost', { nothingWritten: false })
    }
    const seen: number[] = []
    const following = stream
      .follow({ seqNum: 0 }, { as: 'bytes' })
      .records$.subscribe(({ seqNum }) => seen.push(seqNum))
    await clock.settle()
    expect(await outcomeOf(stream.append('a'))).toBe('storage')
    await stream.append('b', { matchSeqNum: 1 })
    await clock.settle()
    expect(await readAll(stream)).toEqual(['a', 'b'])
    expect(seen).toEqual([0, 1])
    following.unsubscribe()
  })

  it('applies a new configuration to later appends', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, hw } = engine
    await stream.append('a')
    await hw
      .basin('basin')
      .stream('stream')
      .reconfigure({ timestamping: { mode: 'client-require' } })
    expect(await outcomeOf(stream.append('b'))).toBe('invalid')
    await stream.append({ body: 'c', timestamp: 5 })
    await hw.basin('basin').stream('stream').reconfigure({ timestamping: null })
    await stream.append('d')
    expect(await readAll(stream)).toEqual(['a', 'c', 'd'])
  })

  it('fails an append in flight when its stream is deleted', async () => {
    const storage = storageOf()
    const engine = await openEngine({ storage })
    const { stream, hw, clock } = engine
    storage.holding = true
    const late = outcomeOf(stream.append('late'))
    await clock.settle()
    await hw.basin('basin').stream('stream').delete()
    storage.holding = false
    const next = outcomeOf(stream.append('next'))
    storage.release()
    expect([await late, await next]).toEqual(['stream_deletion_pending', 'ok'])
    expect(await readAll(stream)).toEqual(['next'])
    expect((await hw.basin('basin').listStreams()).items).toHaveLength(1)
  })
})

describe('two engines on one storage', () => {
  it('interleave appends without losing one, and one engine wins each number', async () => {
    const storage = testStorage()
    const engine = await openEngine({ storage })
    const { clock } = engine
    const other = await open({ storage, clock })
    const [one, two] = [engine.stream, other.basin('basin').stream('stream')]
    const plain = [one, two].flatMap((stream, n) =>
      Array.from({ length: 100 }, (_, i) => stream.append(`${n}/${i}`)),
    )
    const acks = await Promise.all(plain)
    expect(acks.map(({ start }) => start.seqNum).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 200 }, (_, i) => i),
    )
    const all = await readAll(one)
    expect(all).toEqual(await readAll(two))
    for (const n of [0, 1]) {
      expect(all.filter((body) => body.startsWith(`${n}/`))).toEqual(
        Array.from({ length: 100 }, (_, i) => `${n}/${i}`),
      )
    }
    for (let round = 0; round < 50; round++) {
      const matchSeqNum = (await one.checkTail()).seqNum
      const race = await Promise.all([
        outcomeOf(one.append('one', { matchSeqNum })),
        outcomeOf(two.append('two', { matchSeqNum })),
      ])
      expect(race.sort()).toEqual(['ok', 'seq_num_mismatch'])
    }
    await other.close()
  })

  it('deliver the appends of one to the followers of the other, live', async () => {
    const storage = testStorage()
    const engine = await openEngine({ storage })
    const other = await open({ storage, clock: engine.clock })
    const tails: (number | undefined)[] = []
    const following = engine.stream
      .follow({ seqNum: 0 })
      .batches$.subscribe(({ tail }) => tails.push(tail?.seqNum))
    await engine.clock.settle()
    await other.basin('basin').stream('stream').append('x')
    await engine.clock.settle()
    await other.basin('basin').stream('stream').append('y')
    await engine.clock.settle()
    expect(tails).toEqual([1, 2])
    following.unsubscribe()
    await other.close()
  })

  it('never reject an append because of a stale state', async () => {
    const storage = testStorage()
    const engine = await openEngine({ storage })
    const other = await open({ storage, clock: engine.clock })
    await engine.stream.append('known to both')
    await other.basin('basin').stream('stream').append('x')
    expect(await outcomeOf(engine.stream.append('y', { matchSeqNum: 2 }))).toBe('ok')
    await other.basin('basin').stream('stream').fence('token')
    expect(await outcomeOf(engine.stream.append('z', { fencingToken: 'token' }))).toBe('ok')
    await other.basin('basin').stream('stream').delete()
    expect(
      await outcomeOf(engine.hw.basin('basin', { autoCreate: false }).stream('stream').append('z')),
    ).toBe('stream_not_found')
    await other.close()
  })

  it('show nothing of a deleted stream under its name after another engine created it again', async () => {
    const storage = testStorage()
    const engine = await openEngine({ storage })
    const other = await open({ storage, clock: engine.clock })
    await engine.stream.append(['old', 'older'])
    await other.basin('basin').stream('stream').delete()
    await other.basin('basin').createStream('stream')
    expect(await engine.stream.checkTail()).toEqual({ seqNum: 0, timestamp: 0 })
    await engine.stream.append('new')
    expect(await readAll(engine.stream)).toEqual(['new'])
    await other.close()
  })
})

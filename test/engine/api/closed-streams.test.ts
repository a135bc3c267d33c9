import { describe, expect, it } from 'vitest'
import { closeRecord, open } from '../../../src/index.ts'
import { codeOf, openEngine, outcomeOf } from '../../support/engine.ts'
import { testStorage } from '../../support/storage.ts'

describe('closing a stream', () => {
  it('appends a record that is the last one', async () => {
    const { stream } = await openEngine()
    await stream.append('a')
    const ack = await stream.close()
    expect(ack).toMatchObject({ start: { seqNum: 1 }, end: { seqNum: 2 }, tail: { seqNum: 2, closed: true } })
    expect(await stream.checkTail()).toMatchObject({ seqNum: 2, closed: true })
    const records = await stream.read().toArray()
    expect(records.map(({ command }) => command)).toEqual([undefined, { kind: 'close' }])
    await expect(stream.append('b')).rejects.toMatchObject({
      code: 'stream_closed',
      seqNum: 2,
      mayHaveEffects: false,
    })
  })

  it('changes nothing the second time', async () => {
    const { stream } = await openEngine()
    const { start, end, tail } = await stream.close()
    expect(await stream.close()).toEqual({ start, end, tail, duplicate: true })
    expect(await stream.checkTail()).toMatchObject({ seqNum: 1 })
  })

  it('takes effect for appends that were called afterwards, awaited or not', async () => {
    const { stream } = await openEngine()
    const outcomes = await Promise.all(
      [stream.append('a'), stream.close(), stream.append('b'), stream.close(), stream.fence('c')].map(
        outcomeOf,
      ),
    )
    expect(outcomes).toEqual(['ok', 'ok', 'stream_closed', 'ok', 'stream_closed'])
  })

  it('outlasts a restart, and ends with the deletion of the stream', async () => {
    const storage = testStorage()
    const { hw, stream } = await openEngine({ storage })
    await stream.close()
    const other = await open({ storage })
    expect(await outcomeOf(other.basin('basin').stream('stream').append('x'))).toBe('stream_closed')
    await stream.delete()
    await hw.basin('basin').ensureStream('stream')
    expect((await stream.checkTail()).closed).toBeUndefined()
    expect(await outcomeOf(stream.append('x'))).toBe('ok')
    await other.close()
  })
})

describe('a follower of a closed stream', () => {
  it('ends after the close', async () => {
    const { stream } = await openEngine()
    const following = stream.follow({ seqNum: 0 }).toArray()
    await stream.append('a')
    await stream.append(['b', closeRecord()])
    expect((await following).map(({ body }) => body)).toEqual(['a', 'b', ''])
  })

  it('ends even if it leaves out commands', async () => {
    const { stream } = await openEngine()
    const following = stream.follow({ seqNum: 0 }, { commands: false }).toArray()
    await stream.append('a')
    await stream.close()
    expect((await following).map(({ body }) => body)).toEqual(['a'])
  })

  it('ends at once if it starts after the close', async () => {
    const { stream } = await openEngine()
    await stream.append('a')
    await stream.close()
    expect(await stream.follow().toArray()).toEqual([])
    expect((await stream.follow({ seqNum: 0 }).toArray()).length).toBe(2)
    const events = []
    for await (const event of stream.follow().events()) events.push(event)
    expect(events).toMatchObject([{ kind: 'heartbeat', tail: { seqNum: 2, closed: true } }])
  })

  it('completes as an observable and as a web stream', async () => {
    const { stream } = await openEngine()
    const completed = new Promise<number>((resolve, reject) => {
      let count = 0
      stream.follow({ seqNum: 0 }).records$.subscribe({
        next: () => count++,
        complete: () => resolve(count),
        error: reject,
      })
    })
    const bodies: string[] = []
    const read = (async () => {
      for await (const { body } of stream.readable({ seqNum: 0 })) bodies.push(body)
    })()
    await stream.append(['a', closeRecord()])
    await read
    expect(await completed).toBe(2)
    expect(bodies).toEqual(['a', ''])
  })

  it('ends when another engine closes the stream', async () => {
    const storage = testStorage()
    const { stream, clock } = await openEngine({ storage })
    const other = await open({ storage, clock })
    const following = stream.follow({ seqNum: 0 }).toArray()
    await other.basin('basin').stream('stream').append('a')
    await other.basin('basin').stream('stream').close()
    expect((await following).length).toBe(2)
    await other.close()
  })

  it('learns of the close from the tail of the last batch', async () => {
    const { stream } = await openEngine()
    await stream.append('a')
    const live = stream.follow({ seqNum: 0 }).batches()
    expect((await live.next()).value).toMatchObject({ tail: { seqNum: 1 } })
    await stream.close()
    expect((await live.next()).value).toMatchObject({ tail: { seqNum: 2, closed: true } })
    expect((await live.next()).done).toBe(true)
    expect(await stream.readBatch({ seqNum: 0 })).toMatchObject({ tail: { seqNum: 2, closed: true } })
  })

  it('does not wait for a batch', async () => {
    const { stream } = await openEngine()
    await stream.close()
    const { records, tail } = await stream.readBatch({ seqNum: 1, waitMs: 60_000 })
    expect({ records, tail }).toMatchObject({ records: [], tail: { seqNum: 1, closed: true } })
  })
})

it('an append session ends when its stream is closed', async () => {
  const { stream } = await openEngine()
  const session = await stream.appendSession()
  const [a, , c] = await Promise.all([
    session.submit('a'),
    session.submit(closeRecord()),
    session.submit('c').catch((error: unknown) => error),
  ])
  expect(await a.ack()).toMatchObject({ end: { seqNum: 1 } })
  const failure = 'ack' in (c as object) ? await (c as typeof a).ack().catch((e: unknown) => e) : c
  expect(codeOf(failure)).toBe('stream_closed')
  await session.close().catch(() => {})
})

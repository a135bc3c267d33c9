import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { fenceRecord, type HeadwaterError, type ReadBatch } from '../../../src/index.ts'
import { bodies } from '../../support/index.ts'
import { aesOfNode, heldSuite, key, openEncrypted, outcome } from './support.ts'

describe('appends that are not awaited', () => {
  async function start() {
    const suite = heldSuite(aesOfNode, 'seal')
    const engine = await openEncrypted(suite)
    const append = (body: string) => engine.with().append(body)
    const all = async () => bodies(await engine.with().readBatch({ seqNum: 0 }))
    return { ...engine, suite, append, all }
  }

  it('keep their order, however long the cipher takes', async () => {
    const { suite, append, all, clock, hw, ...engine } = await start()
    const acks = ['a', 'b', 'c', 'd'].map(append)
    const fenced = engine.with().append(fenceRecord('t'))
    await clock.settle()
    expect(suite.held).toBe(4)
    for (const index of [3, 1, 0]) suite.release(index)
    await clock.settle()
    expect(hw.stats()).toMatchObject({ pendingAppends: 3 })
    suite.release(0)
    expect((await Promise.all([...acks, fenced])).map(({ start }) => start.seqNum)).toEqual([0, 1, 2, 3, 4])
    expect(await all()).toEqual(['a', 'b', 'c', 'd', 't'])
    expect(hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
  })

  it('continue after one that could not be sealed', async () => {
    const { suite, append, all, clock, hw } = await start()
    const [a, b] = [append('a'), append('b')]
    await clock.settle()
    suite.release(1)
    suite.release(0, new Error('out of entropy'))
    expect(await outcome(a!)).toBe('500 other: records could not be sealed: the cipher failed')
    expect((await b!).start.seqNum).toBe(0)
    expect(await all()).toEqual(['b'])
    expect(hw.stats().appendBytesInFlight).toBe(0)
  })

  it.each<[string, boolean]>([
    ['at once', false],
    ['later', true],
  ])('of a session are not made behind one whose cipher fails %s', async (_, isLater) => {
    const seal = () => {
      if (!isLater) throw new Error('out of entropy')
      return Promise.reject(new Error('out of entropy'))
    }
    const suite = { ...aesOfNode, seal }
    const engine = await openEncrypted(suite)
    const session = await engine.with().appendSession()
    // Commands are not sealed.
    const submitted = [session.submit('a'), session.submit(fenceRecord('t'))]
    const ends = submitted.map((ticket) => outcome(ticket.then((accepted) => accepted.ack())))
    expect((await Promise.all(ends)).map((end) => end.split(':')[0])).toEqual([
      '500 other',
      '500 append_discarded',
    ])
    expect((await engine.with().checkTail()).seqNum).toBe(0)
  })

  it('complete before the engine closes', async () => {
    const { suite, append, clock, hw } = await start()
    const appended = append('a')
    await clock.settle()
    let closed = false
    const closing = hw.close().then(() => {
      closed = true
    })
    await clock.settle()
    expect(closed).toBe(false)
    suite.release(0)
    expect((await appended).start.seqNum).toBe(0)
    await closing
    expect(clock.pending).toBe(0)
  })
})

describe.each<[string, boolean]>([
  ['a stored block', false],
  ['a live batch', true],
])('a session whose cipher is opening %s', (_, isLive) => {
  it.each<[string, string]>([
    ['its signal', 'aborted'],
    ['its consumer', 'done'],
    ['the end of its token', 'the access token was revoked or has expired'],
    ['the end of the engine', 'headwater is closed'],
  ])('is ended by %s', async (cause, expected) => {
    const suite = heldSuite(aesOfNode)
    const { hw, clock, ...engine } = await openEncrypted(suite)
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] } as const
    const holder = hw.as(await hw.issueAccessToken({ id: 'token', scope }))
    await engine.with().append('a')
    const before = clock.pending
    const abort = new AbortController()
    const stream = holder.basin('encrypted').stream('stream', { encryptionKey: key(1) })
    const batches = stream.follow({ seqNum: 0 }, { signal: abort.signal }).batches()
    if (isLive) await batches.next()
    suite.holds = 'open'
    const outcomes = outcomesOf(batches.next())
    await clock.settle()
    if (isLive) await engine.with().append('b')
    await expect.poll(() => suite.held).toBe(1)
    expect(outcomes).toEqual([])

    const ends: Record<string, () => unknown> = {
      'its signal': () => abort.abort(new Error('aborted')),
      'its consumer': () => batches.return?.(),
      'the end of its token': () => hw.revokeAccessToken('token'),
      'the end of the engine': () => hw.close(),
    }
    const ended = ends[cause]!()
    await expect.poll(() => outcomes).toEqual([expected])
    await ended
    expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])

    // A late result is dropped.
    suite.release(0)
    await clock.settle()
    expect(outcomes).toEqual([expected])
    expect(await batches.next()).toEqual({ done: true, value: undefined })
    expect(clock.pending).toBeLessThanOrEqual(before)
  })
})

/** The outcome, once it has settled. */
function outcomesOf(next: Promise<IteratorResult<ReadBatch<'string'>>>): string[] {
  const outcomes: string[] = []
  next.then(
    ({ done }) => outcomes.push(done ? 'done' : 'a batch'),
    (error: HeadwaterError) => outcomes.push(error.message),
  )
  return outcomes
}

import { describe, expect, it } from 'vitest'
import {
  type AppendRequest,
  open,
  StorageConflict,
  type StorageContext,
  StorageFailure,
} from '../../../src/index.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { gated } from '../gated-storage.ts'
import { openEngine, readAll } from '../support.ts'
import { wrapped } from '../wrapped-storage.ts'

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error) => error.code ?? String(error),
  )
const text = (request: AppendRequest) =>
  decodeRecords(request.block.data)
    .map(({ body }) => new TextDecoder().decode(body))
    .join()

describe('append pipeline', () => {
  it('never stores a durable append twice: behind a withheld refusal, before a storage failure (one engine)', async () => {
    const storage = gated(testStorage(), { shared: false })
    const { stream } = await openEngine({ storage })
    await stream.append('0')
    storage.holding = true
    storage.onAppend = (request) => {
      if (text(request) === 'd') throw new StorageFailure('io', 'disk', { nothingWritten: true })
    }
    const results = [
      code(stream.append('a')),
      code(stream.append('refused', { matchSeqNum: 99 })),
      code(stream.append('c')),
      code(stream.append('d')),
    ]
    storage.holding = false
    storage.release()
    expect({ results: await Promise.all(results), stored: await readAll(stream) }).toEqual({
      results: ['ok', 'seq_num_mismatch', 'ok', 'storage'],
      stored: ['0', 'a', 'c'],
    })
  })

  it('never tries an append of unknown outcome again behind a withheld refusal', async () => {
    const storage = gated(testStorage(), { shared: false })
    const { stream } = await openEngine({ storage })
    await stream.append('0')
    storage.holding = true
    let failed = false
    storage.onAppended = (request) => {
      if (text(request) !== 'c' || failed) return
      failed = true
      throw new StorageFailure('io', 'no answer', { nothingWritten: false })
    }
    const results = [
      code(stream.append('a')),
      code(stream.append('refused', { matchSeqNum: 99 })),
      code(stream.append('c')),
    ]
    storage.holding = false
    storage.release()
    expect({ results: await Promise.all(results), stored: await readAll(stream) }).toEqual({
      results: ['ok', 'seq_num_mismatch', 'storage'],
      stored: ['0', 'a', 'c'],
    })
  })

  it('the same, when the stream is reconfigured while a and c are being acknowledged', async () => {
    // Appends take effect at once; their answers arrive when the test says so.
    const answers: (() => void)[] = []
    let holding = false
    const storage = wrapped(testStorage(), { shared: false }, (session) => ({
      append: async (request: AppendRequest) => {
        await session.append(request)
        if (holding) await new Promise<void>((go) => answers.push(go))
      },
    }))
    const { hw, clock, stream } = await openEngine({ storage })
    await stream.append('0')
    holding = true
    const results = [
      code(stream.append('a')),
      code(stream.append('refused', { matchSeqNum: 99 })),
      code(stream.append('c')),
    ]
    await clock.settle()
    await hw.basin('basin').reconfigureStream('stream', { retentionPolicy: 'infinite' })
    holding = false
    for (const answer of answers) answer()
    expect(await Promise.all(results)).toEqual(['ok', 'seq_num_mismatch', 'ok'])
    expect(await readAll(stream)).toEqual(['0', 'a', 'c'])
  })

  it('a session keeps what was overtaken by a reconfiguration, when a write behind it fails', async () => {
    const storage = gated(testStorage(), { shared: false })
    const { hw, clock, stream } = await openEngine({ storage })
    const session = await stream.appendSession()
    storage.holding = true
    let failed = false
    storage.onAppend = (request) => {
      if (text(request) !== 'b' || failed) return
      failed = true
      throw new StorageFailure('io', 'no answer', { nothingWritten: false })
    }
    const results = ['a', 'b', 'c'].map(async (body) => code((await session.submit(body)).ack()))
    await clock.settle()
    await hw.basin('basin').reconfigureStream('stream', { retentionPolicy: 'infinite' })
    storage.holding = false
    storage.release()
    expect(await Promise.all(results)).toEqual(['ok', 'ok', 'ok'])
    expect(await readAll(stream)).toEqual(['a', 'b', 'c'])
  })

  it('a closing engine makes what a session has on its way, whatever of the session comes too late', async () => {
    const storage = gated(testStorage(), { shared: false })
    const limits = { appendInFlightBytes: 1_048_576 }
    const { hw, clock, stream } = await openEngine({ storage, limits })
    const session = await stream.appendSession()
    const submit = (body: string) => code(session.submit(body).then((ticket) => ticket.ack()))
    storage.holding = true
    const before = ['x'.repeat(900_000), 'a', 'b'].map((body) => code(stream.append(body)))
    const onItsWay = submit('z')
    // Waits for room until the first one is stored, and by then the engine closes.
    const late = submit('z'.repeat(900_000))
    await clock.settle()
    // All of them have to be sequenced again, few at a time.
    await hw.basin('basin').reconfigureStream('stream', { retentionPolicy: 'infinite' })
    storage.release()
    await clock.settle()
    const closed = hw.close()
    await clock.settle()
    storage.release()
    expect(await late).toBe('unavailable')
    storage.holding = false
    storage.release()
    await closed
    expect(await Promise.all([...before, onItsWay])).toEqual(['ok', 'ok', 'ok', 'ok'])
  })

  it('a write of unknown outcome that turns up late lets no later append slip in (order, duplicates)', async () => {
    let late: (() => Promise<void>) | undefined
    const storage = wrapped(testStorage(), {}, (session) => ({
      append: async (request: AppendRequest) => {
        if (text(request) === 'x' && late === undefined) {
          late = () => session.append(request)
          throw new StorageFailure('io', 'connection lost', { nothingWritten: false })
        }
        // What was lost turns up just before the next write.
        if (late !== undefined && text(request) === 'y') {
          const turnUp = late
          late = async () => {}
          await turnUp().catch(() => {})
        }
        return session.append(request)
      },
    }))
    const { stream } = await openEngine({ storage })
    expect(await code(stream.append('x'))).toBe('storage')
    const results = [code(stream.append('y')), code(stream.append('z'))]
    expect(await Promise.all(results)).toEqual(['ok', 'ok'])
    expect(await readAll(stream)).toEqual(['x', 'y', 'z'])
  })

  it('and loses no fencing token', async () => {
    let late: (() => Promise<void>) | undefined
    const storage = wrapped(testStorage(), {}, (session) => ({
      append: async (request: AppendRequest) => {
        if (text(request) === 'owner' && late === undefined) {
          late = () => session.append(request)
          throw new StorageFailure('io', 'connection lost', { nothingWritten: false })
        }
        if (late !== undefined && text(request) === 'y') {
          const turnUp = late
          late = async () => {}
          await turnUp().catch(() => {})
        }
        return session.append(request)
      },
    }))
    const { stream } = await openEngine({ storage })
    expect(await code(stream.fence('owner'))).toBe('storage')
    await Promise.all([code(stream.append('y')), code(stream.append('z'))])
    // The fence command is in the stream, so the stream is fenced.
    expect((await readAll(stream))[0]).toBe('owner')
    expect(await code(stream.append('w', { fencingToken: 'owner' }))).toBe('ok')
  })

  it('appends that wait behind others do not fail with a conflict while the pipeline makes progress', async () => {
    const inner = testStorage()
    const storage = gated(inner)
    const clock = testClock({ now: 1_000_000 })
    const { stream } = await openEngine({ storage, clock })
    const other = await open({ storage: inner, clock })
    const rival = other.basin('basin').stream('stream')
    storage.holding = true
    const results = Array.from({ length: 130 }, (_, i) => code(stream.append(`${i}`)))
    await clock.settle()
    for (let round = 0; round < 400 && storage.held > 0; round++) {
      storage.release(1)
      await clock.settle()
      // One of ours got in. Then the rival does, so that the rest in flight conflicts.
      if (round < 125) await rival.append('rival')
      storage.release()
      storage.holding = true
      await clock.settle()
    }
    storage.holding = false
    storage.release()
    const failed = (await Promise.all(results)).filter((result) => result !== 'ok')
    expect(failed).toEqual([])
    await other.close()
  })

  it('in a session nothing is appended behind an append that gave up after too many conflicts', async () => {
    const storage = gated(testStorage())
    const { stream, clock } = await openEngine({ storage })
    const session = await stream.appendSession()
    let conflicts = 0
    let second: Promise<unknown> | undefined
    storage.onAppend = (request) => {
      if (text(request) !== 'a') return
      conflicts++
      if (conflicts === 50) second = code(session.submit('b').then((ticket) => ticket.ack()))
      throw new StorageConflict('someone else')
    }
    const first = await session.submit('a')
    expect(await code(first.ack())).toBe('transaction_conflict')
    await clock.settle()
    expect(await second).not.toBe('ok')
    await code(session.close())
    expect((await stream.checkTail()).seqNum).toBe(0)
  })

  it('a refusal does not rest on a configuration that was replaced before the append was made', async () => {
    // One engine. The head is being read, after a failure, while the stream is reconfigured.
    let holdHead = false
    const heads: (() => void)[] = []
    let failing = false
    const storage = wrapped(testStorage(), { shared: false }, (session) => ({
      append: async (request: AppendRequest) => {
        if (failing) throw new StorageFailure('io', 'disk', { nothingWritten: true })
        return session.append(request)
      },
      head: async (logId: string) => {
        const head = await session.head(logId)
        if (holdHead) await new Promise<void>((go) => heads.push(go))
        return head
      },
    }))
    const { hw, clock, stream } = await openEngine({ storage })
    const basin = hw.basin('basin')
    await basin.reconfigureStream('stream', { timestamping: { mode: 'client-require' } })
    await stream.append({ body: '0', timestamp: 1 })
    failing = true
    holdHead = true
    const failed = code(stream.append({ body: 'x', timestamp: 2 }))
    const refused = code(stream.append({ body: 'y', timestamp: 2 }, { matchSeqNum: 99 }))
    await clock.settle()
    failing = false
    expect(heads.length).toBe(1)
    await basin.reconfigureStream('stream', { timestamping: { mode: 'client-prefer' } })
    const result = code(stream.append('without a timestamp: fine by now'))
    holdHead = false
    for (const go of heads) go()
    expect([await failed, await refused]).toEqual(['storage', 'seq_num_mismatch'])
    expect(await result).toBe('ok')
  })

  it('a refusal does not rest on a head that was read before the append was asked for', async () => {
    const storage = testStorage()
    let holds = false
    let release = () => {}
    let tellHeld = () => {}
    const isHeld = new Promise<void>((resolve) => {
      tellHeld = resolve
    })
    const slow = wrapped(storage, { shared: true, notifications: 'hint' }, (session) => ({
      async head(logId) {
        const head = await session.head(logId)
        if (!holds) return head
        holds = false
        tellHeld()
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return head
      },
    }))
    const clock = testClock()
    // What the other engine does is not told here.
    const unaware = {
      ...slow,
      open: (context: StorageContext) => slow.open({ ...context, onLogChanged: () => {} }),
    }
    const engines = [await open({ storage: unaware, clock }), await open({ storage, clock })]
    const [here, elsewhere] = engines.map((engine) => engine.basin('basin').stream('stream'))
    await here!.append('a')
    holds = true
    const refused = code(here!.append('b', { matchSeqNum: 99 }))
    await isHeld
    await elsewhere!.append('c')
    const matching = code(here!.append('d', { matchSeqNum: 2 }))
    release()
    expect(await Promise.all([refused, matching])).toEqual(['seq_num_mismatch', 'ok'])
    expect(await readAll(here!)).toEqual(['a', 'c', 'd'])
    for (const engine of engines) await engine.close()
  })

  it('an append under way when its stream is deleted does not turn up behind later ones in the next', async () => {
    const storage = gated(testStorage())
    const { hw, clock, stream } = await openEngine({ storage })
    storage.holding = true
    const first = code(stream.append('first'))
    await clock.settle()
    await hw.basin('basin').deleteStream('stream')
    storage.holding = false
    const second = stream.append('second')
    await clock.settle()
    storage.release()
    await second
    expect([await first, await readAll(stream)]).toEqual(['stream_deletion_pending', ['second']])
  })
})

import { describe, expect, it } from 'vitest'
import { HeadwaterError, open, type StorageSession } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { openEngine } from '../support.ts'
import { wrapped } from '../wrapped-storage.ts'

const codeOf = (error: unknown) => (HeadwaterError.is(error) ? error.code : String(error))
const never = async function* () {
  yield 'first'
  await new Promise(() => {})
}

describe('after the engine was closed', () => {
  it('a producer takes in nothing and arms no timer', async () => {
    const { hw, clock, stream } = await openEngine()
    const before = stream.producer()
    await hw.close()
    const results = [
      await before.submit('a').then(() => 'taken', codeOf),
      await stream
        .producer()
        .submit('a')
        .then(() => 'taken', codeOf),
    ]
    expect({ results, pending: clock.pending }).toEqual({
      results: ['unavailable', 'unavailable'],
      pending: 0,
    })
  })

  it('an append session that was being opened is over', async () => {
    let hold: Promise<void> | undefined
    let waiting = 0
    const storage = wrapped(testStorage(), {}, (session: StorageSession) => ({
      async get(collection, key) {
        const found = await session.get(collection, key)
        if (hold !== undefined && collection === 'streams') {
          waiting++
          await hold
        }
        return found
      },
    }))
    const clock = testClock({ now: 1_000_000 })
    const first = await open({ storage, clock })
    await first
      .basin('basin')
      .ensureStream('s')
      .catch(async () => {
        await first.ensureBasin('basin')
        await first.basin('basin').ensureStream('s')
      })
    const hw = await open({ storage, clock })
    let go!: () => void
    hold = new Promise((resolve) => {
      go = resolve
    })
    const opening = hw
      .basin('basin')
      .stream('s')
      .appendSession()
      .then((s) => s, codeOf)
    await clock.settle()
    expect(waiting).toBe(1)
    const closed = hw.close()
    go()
    hold = undefined
    await closed
    const session = await opening
    if (typeof session !== 'string') {
      let ended = 'open'
      session.acks$.subscribe({
        complete: () => {
          ended = 'complete'
        },
        error: () => {
          ended = 'error'
        },
      })
      await clock.settle()
      expect(ended).toBe('error')
    }
    await first.close()
  })
})

describe('appendAll', () => {
  it('return() ends it while its source has nothing', async () => {
    const { hw, clock, stream } = await openEngine()
    const acks = stream.appendAll(never())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    let returned = false
    void acks.return().then(() => {
      returned = true
    })
    await clock.settle()
    expect({
      returned,
      pending: await Promise.race([pending, clock.settle().then(() => 'waiting')]),
    }).toEqual({ returned: true, pending: 'ended' })
    await hw.close()
  })

  it('ends when the engine is closed while its source has nothing', async () => {
    const { hw, clock, stream } = await openEngine()
    const acks = stream.appendAll(never())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    await clock.settle()
    await hw.close()
    expect(await Promise.race([pending, clock.settle().then(() => 'waiting')])).toBe('unavailable')
  })

  it('ends when its stream is deleted while its source has nothing and an append fails', async () => {
    const { hw, clock, stream } = await openEngine()
    const source = async function* () {
      yield 'first'
      yield [] as string[]
      await new Promise(() => {})
    }
    const acks = stream.appendAll(source())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    await clock.settle()
    expect(await Promise.race([pending, clock.settle().then(() => 'waiting')])).toBe('invalid')
    await hw.close()
  })
})

describe('delete-on-empty', () => {
  it('leaves no deadline of a stream that was deleted for more than an hour', async () => {
    let inner: StorageSession | undefined
    const storage = wrapped(testStorage(), {}, (session) => {
      inner = session
      return {}
    })
    const { hw, clock } = await openEngine({ storage })
    const basin = hw.basin('basin')
    for (let i = 0; i < 10; i++) {
      await basin.ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 2 ** 40 } })
      await basin.deleteStream('s')
    }
    await clock.advance('62m')
    expect(await inner!.list('deadlines', { prefix: '', after: '', limit: 100 })).toHaveLength(0)
    await hw.close()
  })

  it('goes by the age that is configured now, not by that of the creation, within the hour', async () => {
    const { hw, clock } = await openEngine()
    const basin = hw.basin('basin')
    await basin.ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 10 * 86_400 } })
    await basin.reconfigureStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
    await clock.advance('62m')
    const { items } = (await basin.listStreams({ prefix: 's' })) as unknown as { items: { name: string }[] }
    expect(items.map(({ name }) => name)).toEqual(['stream'])
    await hw.close()
  })
})

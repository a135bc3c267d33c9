import { beforeEach, describe, expect, it } from 'vitest'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../src/storage/errors.ts'
import { deferred, testClock, testStorage, wrapped } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  ofAccount,
  ofBasin,
  ofStream,
  openUsage,
  type TestUsage,
  upkeep,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

async function createA(test: TestUsage): Promise<void> {
  await createBasin(test, 'basin-one')
  await createStream(test, A)
}

describe('usage is stored', () => {
  it('once a minute by one timer until the meter closes, so that a crash loses a minute', async () => {
    const test = await openUsage({ started: true })
    test.usage.start()
    test.usage.delivered('basin-one', 1)
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 3 * MINUTE + 59)
    test.usage.delivered('basin-one', 1)
    expect(test.clock.pending).toBe(1)
    const next = await openUsage(test)
    const range = [0, 3 * MINUTE] as const
    expect(await ofBasin(next, 'basin-one', 'read-throughput', range)).toEqual({ read_bytes: '0:1' })
    expect((await ofBasin(next, 'basin-one', 'read-ops', range, 'hour')).streaming).toEqual('0:4')
    await test.usage.close()
    expect(test.clock.pending).toBe(0)
  })

  it('on close, which ends open reads', async () => {
    const test = await openUsage({ started: true })
    await createA(test)
    await append(test, A, 100)
    const end = test.usage.streamingRead('basin-one')
    await advanceTo(test, MINUTE + 10)
    await append(test, A, 50)
    await Promise.all([test.usage.close(), test.usage.close()])
    end()
    test.usage.delivered('basin-one', 1)
    await test.usage.close()
    expect(test.clock.pending).toBe(0)

    const next = await openUsage(test)
    await advanceTo(next, HOUR)
    const range = [0, HOUR] as const
    expect((await ofBasin(next, 'basin-one', 'append-throughput', range)).standard).toEqual('0:100 1m:50')
    expect((await ofBasin(next, 'basin-one', 'read-ops', range)).streaming).toEqual('0:1 1m:1')
    expect(await ofStream(next, A, range)).toMatch(/^0:100 1m:150 2m:150 /)
  })

  it('later, if it is recorded while other usage is stored', async () => {
    const test = await openUsage()
    const querying = ofBasin(test, 'basin-one', 'read-throughput', [0, 1])
    for (let i = 0; i < 50; i++) {
      test.usage.delivered('basin-one', 1)
      await Promise.resolve()
    }
    await querying
    await test.usage.close()
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: '0:50' })
  })

  it('without counting appends of a minute again that it stored before', async () => {
    const test = await openUsage()
    const connection = {}
    await createA(test)
    for (let i = 0; i < 2; i++) {
      await append(test, A, 1, connection)
      expect(await ofBasin(test, 'basin-one', 'append-ops', [0, 1])).toMatchObject({ standard: '0:1' })
    }
  })

  it('with all minutes of an open read after the storage hung', async () => {
    const test = await openUsage({ started: true })
    await createA(test)
    await test.clock.settle()
    const { commit } = test.session
    const gate = deferred()
    test.session.commit = (changes) => gate.promise.then(() => commit.call(test.session, changes))
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 30 * MINUTE)
    await append(test, A, 7)
    gate.resolve()
    const { streaming } = await ofBasin(test, 'basin-one', 'read-ops', [0, 30 * MINUTE], 'hour')
    expect(streaming).toEqual('0:31')
    const range = [0, 30 * MINUTE + 1] as const
    expect(await ofBasin(test, 'basin-one', 'append-throughput', range)).toMatchObject({
      standard: '30m:7',
    })
    await test.usage.close()
  })
})

/**
 * A storage whose calls fail on request, and so do its commits of usage, before or after they took effect.
 */
function failing() {
  const failure = new StorageFailure('io', 'the disk is gone', { nothingWritten: false })
  const control = {
    fails: (_call: 'commit' | 'committed' | 'measure' | 'list' | 'get'): unknown => undefined,
    failOn(...calls: readonly string[]) {
      control.fails = (call) => (calls.includes(call) ? failure : undefined)
    },
    storage: wrapped(testStorage(), {}, (session): Partial<StorageSession> => {
      const check = (call: Parameters<typeof control.fails>[0]) => {
        const error = control.fails(call)
        if (error !== undefined) throw error
      }
      return {
        get: async (...args) => {
          check('get')
          return session.get(...args)
        },
        list: async (...args) => {
          check('list')
          return session.list(...args)
        },
        measure: async (logIds) => {
          check('measure')
          return session.measure(logIds)
        },
        commit: async (changes) => {
          const isUsage = changes.some((change) => 'collection' in change && change.collection === 'usage')
          if (isUsage) check('commit')
          await session.commit(changes)
          if (isUsage) check('committed')
        },
      }
    }),
  }
  return control
}

describe('a storage that fails', () => {
  let control: ReturnType<typeof failing>
  let test: TestUsage

  beforeEach(async () => {
    control = failing()
    test = await openUsage({ storage: control.storage, started: true })
    await createA(test)
    await test.clock.settle()
  })

  it('is reported each minute, and receives everything when it recovers', async () => {
    control.failOn('commit', 'get', 'list', 'measure')
    test.usage.basinActive('basin-one')
    test.usage.delivered('basin-one', 1)
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    test.usage.delivered('basin-one', 2)
    await advanceTo(test, 3 * MINUTE + 30)
    expect(test.errors).toHaveLength(3)
    control.failOn()
    await append(test, A, 7)
    await advanceTo(test, 4 * MINUTE)
    expect(test.errors).toHaveLength(3)
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-throughput', [0, 4 * MINUTE])).toEqual({
      read_bytes: '0:1 1m:2',
    })
    expect(await ofStream(next, A, [3 * MINUTE, 4 * MINUTE])).toEqual('3m:7')
    expect(await activeBasins(next, [0, 1])).toEqual(['basin-one'])
  })

  it('keeps everything if its commits succeed but seem to fail, which counts twice', async () => {
    // More documents than fit into one commit.
    const basins = Array.from({ length: 120 }, (_, index) => `basin-${index}`)
    control.failOn('committed')
    for (const basin of basins) test.usage.delivered(basin, 10)
    await advanceTo(test, MINUTE)
    control.failOn()
    const totals = new Set<string>()
    for (const basin of basins) {
      const { read_bytes } = await ofBasin(test, basin, 'read-throughput', [0, 1], 'hour')
      totals.add(read_bytes!)
    }
    expect(totals).toEqual(new Set(['0:10', '0:20']))
  })

  it('is reported by close', async () => {
    test.usage.delivered('basin-one', 1)
    control.failOn('get')
    await test.usage.close()
    expect(test.errors).toHaveLength(1)
    expect(test.clock.pending).toBe(0)
  })

  it('keeps usage if another engine always commits first', async () => {
    test.usage.delivered('basin-one', 1)
    control.fails = (call) => (call === 'commit' ? new StorageConflict('another was faster') : undefined)
    await advanceTo(test, MINUTE)
    expect(test.errors).toMatchObject([{ code: 'transaction_conflict' }])
    control.failOn()
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: '0:1' })
  })

  it('stores other usage if it cannot measure logs, and measures them later', async () => {
    await append(test, A, 5)
    control.failOn('measure')
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    const { standard } = await ofBasin(await openUsage(test), 'basin-one', 'append-throughput', [0, 1])
    expect(standard).toEqual('0:5')
    control.failOn()
    await advanceTo(test, 2 * MINUTE)
    expect(await ofStream(test, A, [MINUTE, MINUTE])).toEqual('1m:5')
  })

  it.each(['commit', 'get', 'measure'])('makes a query reject with `storage`: %s', async (call) => {
    await append(test, A, 1)
    control.failOn(call)
    await expect(ofStream(test, A, [0, 1])).rejects.toMatchObject({ code: 'storage' })
    control.failOn()
    expect(await ofStream(test, A, [0, 1])).toEqual('0:1')
  })

  it('loses nothing that a query tried to store', async () => {
    test.usage.operation('list-basins', undefined)
    control.failOn('get')
    await expect(ofAccount(test, 'account-ops', [0, 1])).rejects.toMatchObject({ code: 'storage' })
    control.failOn()
    expect(await ofAccount(test, 'account-ops', [0, 1])).toEqual({ 'list-basins': '0:1' })
  })

  it('does not prevent the upkeep of an hour, which begins again', async () => {
    for (const stream of ['b', 'c']) {
      await createBasin(test, `basin-${stream}`)
      await createStream(test, { basin: `basin-${stream}`, stream })
      await append(test, { basin: `basin-${stream}`, stream }, 5)
    }
    control.failOn('get', 'list', 'measure')
    const { fails } = control
    let calls = 0
    control.fails = (call) => (++calls % 7 === 0 ? fails(call) : undefined)
    await advanceTo(test, HOUR + 4 * MINUTE)
    expect(test.errors.length).toBeGreaterThan(1)
    control.failOn()
    for (const basin of ['basin-b', 'basin-c']) {
      expect(await ofBasin(test, basin, 'storage', [0, 1])).toEqual({ metered_size: '0:5' })
    }
  })
})

describe('several engines on one storage', () => {
  it('add up their usage when their commits interleave', async () => {
    const clock = testClock()
    const storage = wrapped(testStorage(), {}, (session) => ({
      commit: async (changes) => {
        // Every engine has read before one of them writes.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve()
        await session.commit(changes)
      },
    }))
    const engines = await Promise.all([1, 2, 3].map(() => openUsage({ storage, clock })))
    const totalOf = (engine: TestUsage) => ofBasin(engine, 'basin-one', 'read-throughput', [0, 1], 'hour')
    for (let minute = 0; minute < 10; minute++) {
      await advanceTo({ clock }, minute * MINUTE + 1)
      for (const [index, { usage }] of engines.entries()) {
        usage.delivered('basin-one', 10 ** index)
        usage.basinActive('basin-one')
      }
      await Promise.all(engines.map(totalOf))
    }
    await advanceTo({ clock }, HOUR)
    for (const engine of engines) {
      expect(await totalOf(engine)).toEqual({ read_bytes: '0:1110' })
      expect(await activeBasins(engine, [0, 1])).toEqual(['basin-one'])
    }
  })
})

describe('a clock that is wrong by years', () => {
  const YEAR_MS = 365 * DAY * 1000

  /** A clock with an offset set by the test, whose timers are not affected. */
  function skewed(skewMs: number): VirtualClock & { skewMs: number } {
    const inner = testClock()
    return {
      skewMs,
      now() {
        return inner.now() + this.skewMs
      },
      schedule: inner.schedule,
      advance: inner.advance,
      settle: inner.settle,
      get pending() {
        return inner.pending
      },
    }
  }

  it('does not stop the samples of other engines', async () => {
    const storage = testStorage()
    const wrong = await openUsage({ storage, clock: testClock({ now: Date.UTC(2030, 0, 1) }), started: true })
    await wrong.clock.settle()
    await wrong.usage.close()
    const test = await openUsage({ storage })
    await createA(test)
    for (let hour = 1; hour <= 3; hour++) {
      await append(test, A, 100)
      await advanceTo(test, hour * HOUR)
      await upkeep(test)
    }
    expect((await ofBasin(test, 'basin-one', 'storage', [0, 3 * HOUR])).metered_size).toEqual(
      '0:100 1h:200 2h:300',
    )
    expect(await activeBasins(test, [2 * HOUR, 3 * HOUR])).toEqual(['basin-one'])
  })

  it('does not stop its own engine after it is set right', async () => {
    const clock = skewed(5 * YEAR_MS)
    const test = await openUsage({ clock, started: true })
    await clock.settle()
    clock.skewMs = 0
    await createA(test)
    await append(test, A, 100)
    await clock.advance('61m')
    await append(test, A, 1)
    expect((await ofBasin(test, 'basin-one', 'storage', [0, HOUR])).metered_size).toEqual('0:100')
    await test.usage.close()
  })

  it.each([-55 * YEAR_MS, 5 * YEAR_MS])(
    'adds no operations for an open read when it is set right: off by %d ms',
    async (skewMs) => {
      const clock = skewed(skewMs)
      const test = await openUsage({ clock, started: true })
      test.usage.streamingRead('basin-one')
      await clock.advance('30s')
      clock.skewMs = 0
      await clock.advance('3m')
      // As if no time had passed since the last check of the read.
      const { streaming } = await ofBasin(test, 'basin-one', 'read-ops', [0, HOUR / 12])
      expect(streaming).toEqual('2m:1 3m:1')
      const month = [-29 * DAY, HOUR / 12] as const
      expect(await ofBasin(test, 'basin-one', 'read-ops', month, 'day')).toMatchObject({
        streaming: '0:2',
      })
      await test.usage.close()
    },
  )
})

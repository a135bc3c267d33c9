import { describe, expect, it } from 'vitest'
import { deferred } from '../support/index.ts'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  HOUR,
  MINUTE,
  ofBasin,
  ofStream,
  openUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const RANGE = [0, HOUR] as const

describe('usage is stored', () => {
  it('at the next full minute by one timer, which exists only if there is usage', async () => {
    const test = await openUsage()
    await advanceTo(test, 20)
    expect(test.clock.pending).toBe(0)
    test.usage.delivered('basin-one', 1)
    test.usage.operation('list-basins', undefined)
    test.usage.streamCreated('basin-one')
    test.usage.storedChanged(['a'])
    expect(test.clock.pending).toBe(1)
    await advanceTo(test, MINUTE)
    expect(test.clock.pending).toBe(0)
  })

  it.each<[string, (test: Awaited<ReturnType<typeof openUsage>>) => void]>([
    ['a stored log', ({ usage }) => usage.storedChanged(['a'])],
    ['a created stream', ({ usage }) => usage.streamCreated('basin-one')],
    ['a deleted stream', ({ usage }) => usage.streamDeleted('basin-one')],
    ['a streaming read', ({ usage }) => usage.streamingRead('basin-one')],
    ['an operation', ({ usage }) => usage.operation('list-basins', undefined)],
  ])('a timer is armed by %s', async (_, record) => {
    const test = await openUsage()
    record(test)
    expect(test.clock.pending).toBe(1)
    await test.usage.close()
    expect(test.clock.pending).toBe(0)
  })

  it('before a query, after which no timer is left', async () => {
    const test = await openUsage()
    test.usage.delivered('basin-one', 1)
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 1]] })
    expect(test.clock.pending).toBe(0)
  })

  it('every minute while a streaming read is open', async () => {
    const test = await openUsage()
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 3 * MINUTE + 59)
    expect(test.clock.pending).toBe(1)
    // As if the process had ended here.
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-ops', [0, 3 * MINUTE], 'hour')).toMatchObject({
      streaming: [[0, 4]],
    })
  })

  it('and counted while the storage hangs', async () => {
    const test = await openUsage()
    test.usage.start()
    const connection = {}
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    const { commit } = test.session
    const gate = deferred()
    test.session.commit = (changes) => gate.promise.then(() => commit.call(test.session, changes))
    test.usage.streamingRead('basin-one')
    await advanceTo(test, 30 * MINUTE)
    await append(test, A, 7, connection)
    await advanceTo(test, 30 * MINUTE + 10)
    gate.resolve()
    expect(await ofBasin(test, 'basin-one', 'read-ops', [0, 30 * MINUTE], 'hour')).toMatchObject({
      streaming: [[0, 31]],
    })
    expect(await ofBasin(test, 'basin-one', 'append-throughput', [0, 30 * MINUTE + 1])).toMatchObject({
      standard: [[30 * MINUTE, 7]],
    })
    await test.usage.close()
  })

  it('on close, which leaves no timer', async () => {
    const test = await openUsage()
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 100)
    const end = test.usage.streamingRead('basin-one')
    await advanceTo(test, MINUTE + 10)
    await append(test, A, 50)
    await Promise.all([test.usage.close(), test.usage.close()])
    expect(test.clock.pending).toBe(0)
    end()
    test.usage.delivered('basin-one', 1)
    test.usage.storedChanged(['a'])
    await test.usage.close()
    expect(await test.usage.maintain()).toBe(false)
    expect(test.clock.pending).toBe(0)

    const next = await openUsage(test)
    await advanceTo(next, HOUR)
    expect(await ofBasin(next, 'basin-one', 'append-throughput', RANGE)).toMatchObject({
      standard: [
        [0, 100],
        [MINUTE, 50],
      ],
    })
    expect(await ofBasin(next, 'basin-one', 'read-ops', RANGE)).toMatchObject({
      streaming: [
        [0, 1],
        [MINUTE, 1],
      ],
    })
    expect((await ofStream(next, A, RANGE)).slice(0, 3)).toEqual([
      [0, 100],
      [MINUTE, 150],
      [2 * MINUTE, 150],
    ])
  })

  it('later, if it is recorded during a flush', async () => {
    const test = await openUsage()
    test.usage.delivered('basin-one', 1)
    const closing = ofBasin(test, 'basin-one', 'read-throughput', [0, 1])
    const adding = (async () => {
      for (let i = 0; i < 50; i++) {
        test.usage.delivered('basin-one', 1)
        await Promise.resolve()
      }
    })()
    await Promise.all([closing, adding])
    await advanceTo(test, MINUTE)
    expect(await ofBasin(await openUsage(test), 'basin-one', 'read-throughput', [0, 1])).toEqual({
      read_bytes: [[0, 51]],
    })
  })

  it('with appends counted again in every minute', async () => {
    const test = await openUsage()
    const connection = {}
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 1, connection)
    await ofBasin(test, 'basin-one', 'append-ops', [0, 1])
    await append(test, A, 1, connection)
    expect(await ofBasin(test, 'basin-one', 'append-ops', [0, 1])).toMatchObject({ standard: [[0, 1]] })
  })
})

import { expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { syncedStream } from '../../adapters/sync/index.ts'
import { type Clock, open } from '../../src/index.ts'
import type { Storage, StorageSession } from '../../src/storage/contract.ts'
import { openServer, until } from './mirrored.ts'
import { watch } from './outboxes.ts'

/** What a device does. */
class Activity {
  timers = 0
  storageCalls = 0

  /** Returns the clock, and counts the timers that fire. */
  clock(clock: Clock): Clock {
    return {
      isVirtual: clock.isVirtual,
      now: () => clock.now(),
      schedule: (delayMs, callback, options) => {
        const fire = () => {
          this.timers++
          callback()
        }
        return clock.schedule(delayMs, fire, options)
      },
    }
  }

  /** Returns the storage, and counts all calls. */
  storage(inner: Storage): Storage {
    return {
      manifest: inner.manifest,
      open: async (context) =>
        new Proxy(await inner.open(context), {
          get: (session: StorageSession, name: keyof StorageSession) => {
            const member: unknown = session[name]
            if (typeof member !== 'function') return member
            return (...args: unknown[]) => {
              this.storageCalls++
              return member.apply(session, args)
            }
          },
        }),
    }
  }

  /** The timers and storage calls while something happens. */
  async during(work: Promise<unknown>) {
    const { timers, storageCalls } = this
    await work
    return { timers: this.timers - timers, storageCalls: this.storageCalls - storageCalls }
  }
}

test('an idle synced stream costs one connection, and nothing besides its heartbeats', {
  tags: ['slow'],
}, async () => {
  const server = await openServer()
  await server.stream.append('stored')
  const requests = watch(server.network)
  const activity = new Activity()
  const clock = activity.clock(server.clock)
  // Different ids, and background work once a minute.
  let drawn = 0
  const random = () => 0.5 + ++drawn * 1e-9
  const hw = await open({ storage: activity.storage(memory()), clock, random })
  onTestFinished(() => hw.close())
  const remote = (await server.connected({ clock })).stream('stream')
  const local = hw.basin('basin').stream('stream')
  const synced = syncedStream(remote, local, { coordinator: coordinateInThread })
  const bodies: string[] = []
  const view = synced.view$.subscribe((list) => {
    bodies.splice(0, bodies.length, ...list.toArray().map(({ body }) => body))
  })
  await until(synced.mirror, 'live', server.clock)
  await synced.append('written here')
  await server.clock.advance('10m')
  expect(bodies).toEqual(['stored', 'written here'])

  requests.length = 0
  const idle = await activity.during(server.clock.advance('1h'))
  expect(requests).toEqual([])
  expect(server.hw.stats().openReads).toBe(1)
  await server.stream.append('from another device')
  await server.clock.settle()
  expect(bodies.at(-1)).toBe('from another device')

  // What remains is the work of an engine with any reader.
  view.unsubscribe()
  await synced.close()
  const reader = local.follow().records$.subscribe(() => {})
  await server.clock.advance('10m')
  const engine = await activity.during(server.clock.advance('1h'))
  reader.unsubscribe()
  expect(idle).toEqual(engine)
})

import { type VirtualClock, type VirtualClockOptions, virtualClock } from '../../adapters/testing/index.ts'
import { millisecondsIn } from '../../adapters/testing/virtual-clock.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { OVER_SOCKETS } from './access.ts'
import { callsEnded, hasPendingCalls, STORAGE_KIND } from './storage.ts'

const { busySockets } = OVER_SOCKETS
  ? await import('./connected/socket-traffic.ts')
  : { busySockets: () => 0 }

/** How long a machine is awake that slept: some work is done once an hour. */
const AWAKE_MS = 4_200_000

/** A virtual clock whose time of day can differ from what its timers measure. */
export interface TestClock extends VirtualClock {
  /**
   * Changes the time of day by milliseconds, while timers stand still: the machine has slept, or its clock
   * was set. A negative number sets it back.
   */
  jump(ms: number): void
}

/**
 * Lets hours or days pass. With a database, the machine sleeps for most of them, since each minute of
 * background work makes real calls: the time of day advances, and timers do not.
 */
export async function letPass(clock: TestClock, duration: number | string): Promise<void> {
  const durationMs = millisecondsIn(duration)
  const asleepMs = STORAGE_KIND === 'postgres' ? Math.max(durationMs - AWAKE_MS, 0) : 0
  clock.jump(asleepMs)
  await clock.advance(durationMs - asleepMs)
}

/** A virtual clock that waits for pending calls of real disks and real sockets before each timer. */
export function testClock(options?: VirtualClockOptions): TestClock {
  const virtual = virtualClock(options)
  const clock = STORAGE_KIND === 'memory' && !OVER_SOCKETS ? virtual : waiting(virtual)
  let offsetMs = 0
  return {
    ...clock,
    now: () => clock.now() + offsetMs,
    jump: (ms) => {
      offsetMs += ms
    },
    get pending() {
      return clock.pending
    },
  }
}

const hasPendingWork = () => hasPendingCalls() || busySockets() > 0

async function workEnded(): Promise<void> {
  while (hasPendingWork()) {
    await callsEnded()
    await macrotask()
  }
}

function waiting(clock: VirtualClock): VirtualClock {
  const dueTimes = new Map<object, number>()
  let advances = Promise.resolve()

  async function settle(): Promise<void> {
    do {
      await workEnded()
      await clock.settle()
    } while (hasPendingWork())
  }

  async function advanceTo(endMs: number): Promise<void> {
    for (;;) {
      await settle()
      const dueMs = Math.min(...dueTimes.values())
      if (dueMs > endMs) break
      await clock.advance(Math.max(dueMs - clock.now(), 0))
    }
    await clock.advance(endMs - clock.now())
  }

  return {
    isVirtual: true,

    now: () => clock.now(),

    schedule(delayMs, callback) {
      const timer = {}
      const cancel = clock.schedule(delayMs, () => {
        dueTimes.delete(timer)
        callback()
      })
      dueTimes.set(timer, clock.now() + Math.max(delayMs, 0))
      return () => {
        dueTimes.delete(timer)
        cancel()
      }
    },

    async advance(duration) {
      const spanMs = millisecondsIn(duration)
      const advance = advances.then(() => advanceTo(clock.now() + spanMs))
      advances = advance.catch(() => {})
      return advance
    },

    settle,

    get pending() {
      return clock.pending
    },
  }
}

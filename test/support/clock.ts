import { millisecondsIn } from '../../adapters/testing/duration.ts'
import { type VirtualClock, type VirtualClockOptions, virtualClock } from '../../adapters/testing/index.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { ACCESS } from './access.ts'
import { callsEnded, hasPendingCalls, STORAGE_KIND } from './storage.ts'

const { busySockets } =
  ACCESS === 'server' ? await import('./connected/socket-traffic.ts') : { busySockets: () => 0 }

/** A virtual clock that waits for pending calls of real disks and real sockets before each timer. */
export function testClock(options?: VirtualClockOptions): VirtualClock {
  const clock = virtualClock(options)
  return STORAGE_KIND === 'memory' && ACCESS !== 'server' ? clock : waiting(clock)
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

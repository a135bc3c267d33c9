import { durationMs } from '../../adapters/testing/duration.ts'
import { type VirtualClock, type VirtualClockOptions, virtualClock } from '../../adapters/testing/index.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { pendingCalls, STORAGE_KIND } from './storage.ts'

/** A virtual clock that waits for pending calls of real disks before each timer. */
export function testClock(options?: VirtualClockOptions): VirtualClock {
  const clock = virtualClock(options)
  return STORAGE_KIND === 'memory' ? clock : waiting(clock)
}

function waiting(clock: VirtualClock): VirtualClock {
  const dueTimes = new Map<object, number>()
  let advances = Promise.resolve()

  async function settle(): Promise<void> {
    do {
      while (pendingCalls() > 0) await macrotask()
      await clock.settle()
    } while (pendingCalls() > 0)
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
      const spanMs = durationMs(duration)
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

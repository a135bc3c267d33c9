import type { CliContext } from './cli-context.ts'

// `npm start` passes a Ctrl+C on that the terminal has sent to every process already: one press arrives twice.
const SAME_PRESS_MS = 500
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const

export interface StopSignal {
  /** Resolves with the first `SIGINT` or `SIGTERM`. A second one, later, ends the process at once. */
  readonly requested: Promise<void>
  dispose(): void
}

export function stopSignal(context: Pick<CliContext, 'signals' | 'now' | 'exitNow'>): StopSignal {
  const { signals, now, exitNow } = context
  let firstAt: number | undefined
  let resolve: () => void
  const requested = new Promise<void>((done) => {
    resolve = done
  })
  const receive = (signal: keyof typeof EXIT_CODES) => () => {
    if (firstAt === undefined) {
      firstAt = now()
      resolve()
    } else if (now() - firstAt >= SAME_PRESS_MS) exitNow(EXIT_CODES[signal])
  }
  const onInterrupt = receive('SIGINT')
  const onTerminate = receive('SIGTERM')
  signals.on('SIGINT', onInterrupt)
  signals.on('SIGTERM', onTerminate)
  return {
    requested,
    dispose() {
      signals.off('SIGINT', onInterrupt)
      signals.off('SIGTERM', onTerminate)
    },
  }
}

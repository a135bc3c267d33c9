import type { Readable } from 'node:stream'
import type { Clock, Storage } from '../../src/index.ts'
import type { ObjectStorageOptions } from '../storage/s3/index.ts'
import { Interrupted } from './errors.ts'

/** The process environment of a command. Tests replace it. */
export interface CliContext {
  readonly storages: StorageFactory
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fetch: (request: Request) => Promise<Response>
  /** Whether sessions use Node's HTTP/2 instead of `fetch`. */
  readonly http2?: boolean | undefined
  readonly clock: Clock
  readonly print: (line: string) => void
  readonly printError: (line: string) => void
  /** Standard input and output as bytes. */
  readonly input: () => Readable & { readonly isTTY?: boolean | undefined; readonly fd?: number | undefined }
  readonly output: () => NodeJS.WritableStream & {
    readonly isTTY?: boolean | undefined
    readonly fd?: number | undefined
  }
  /** Standard error if it is a terminal, for progress bars. */
  readonly terminal: NodeJS.WriteStream | undefined
  /** Emits `SIGINT` and `SIGTERM`. */
  readonly signals: SignalSource
  /** A monotonic clock in milliseconds. */
  readonly now: () => number
  /** Ends the process immediately. */
  readonly exitNow: (code: number) => void
  /**
   * Returns a signal that aborts with the first `SIGINT` or `SIGTERM` after the first call; the reason is
   * {@link Interrupted}. A second one ends the process immediately.
   */
  readonly stopSignal: () => AbortSignal
}

/** One function for each kind of storage that the command line supports. */
export interface StorageFactory {
  memory(): Storage
  filesystem(directory: string): Storage
  sqlite(path: string): Storage
  postgres(connectionString: string): Storage
  s3(bucket: string, prefix: string, options: BucketOptions): Storage
}

/** The options in the query of an `s3:` URL. */
export type BucketOptions = Pick<ObjectStorageOptions, 'flushMs' | 'takeOver' | 'cacheDirectory'>

interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): SignalSource
  off(signal: 'SIGINT' | 'SIGTERM', listener: () => void): SignalSource
}

// The terminal sends Ctrl+C to every process of the group, and `npm start` forwards it: one press arrives
// twice.
const SAME_PRESS_MS = 500

/** Returns the `stopSignal` of a context, and a function that ends its listening. */
export function stopSignalOf({ signals, now, exitNow }: Omit<CliContext, 'stopSignal'>) {
  const stop = new AbortController()
  let isListening = false
  let firstAt: number | undefined
  const receive = (exitCode: 130 | 143) => () => {
    if (firstAt === undefined) {
      firstAt = now()
      stop.abort(new Interrupted(exitCode))
    } else if (now() - firstAt >= SAME_PRESS_MS) exitNow(exitCode)
  }
  const onInterrupt = receive(130)
  const onTerminate = receive(143)
  return {
    stopSignal(): AbortSignal {
      if (!isListening) signals.on('SIGINT', onInterrupt).on('SIGTERM', onTerminate)
      isListening = true
      return stop.signal
    },
    dispose(): void {
      signals.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate)
    },
  }
}

/** Resolves after the time, or when the signal aborts. */
export function delay(ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.schedule(ms, end)
    signal?.addEventListener('abort', end)
  })
}

import type { FetchHandler } from '../node/index.ts'

/** What the command does to the world around it. Tests bring their own. */
export interface CliContext {
  readonly openService: OpenService
  readonly print: (line: string) => void
  readonly printError: (line: string) => void
  /** Emits `SIGINT` and `SIGTERM`. */
  readonly signals: SignalSource
  /** Milliseconds since any fixed moment. */
  readonly now: () => number
  /** Ends the process at once. */
  readonly exitNow: (code: number) => void
}

interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
  off(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
}

/** An engine with the handler that serves it. */
export interface Service {
  readonly handler: FetchHandler
  /** Calls after the first wait for it. */
  close(): Promise<void>
}

export type OpenService = (options: {
  readonly storage: StorageName
  /** Told of what goes wrong inside, which clients do not get to know. */
  readonly onError: (error: unknown) => void
}) => Promise<Service>

export const STORAGE_NAMES = ['memory'] as const
export type StorageName = (typeof STORAGE_NAMES)[number]

/** Ends the command with one line on standard error. Code 2: it was called wrongly. Code 1: it could not do what was asked. */
export class CliError extends Error {
  readonly exitCode: 1 | 2

  constructor(exitCode: 1 | 2, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

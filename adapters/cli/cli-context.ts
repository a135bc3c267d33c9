import type { Readable } from 'node:stream'
import type { Clock } from '../../src/index.ts'
import type { StorageKind } from './storages.ts'

/** What the command does to the world around it. Tests bring their own. */
export interface CliContext {
  /** The storages that can be asked for by name, the default one first. */
  readonly storages: readonly StorageKind[]
  /** Environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fetch: (request: Request) => Promise<Response>
  readonly clock: Clock
  readonly print: (line: string) => void
  readonly printError: (line: string) => void
  /** Standard input and output as bytes. */
  readonly input: () => Readable
  readonly output: () => NodeJS.WritableStream
  /** Standard error, where that is a terminal: for what is drawn there and overwritten. */
  readonly terminal: NodeJS.WriteStream | undefined
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

import type { Stream } from '../../src/api/stream.ts'
import { invalid } from '../../src/model/errors.ts'
import {
  assertMembers,
  assertSignal,
  type Members,
  type MembersOf,
  oneOf,
  unchecked,
} from '../../src/model/validation.ts'
import type { AfterRefusal } from '../../src/sync/outbox-plan.ts'
import type { Coordinator } from './coordinator.ts'
import type { WakeUps } from './page-events.ts'

/**
 * Options of `outbox`.
 *
 * ```ts
 * const stop = new AbortController()
 * const box = outbox(basin.stream('outbox'), server.basin('app').stream('log'), {
 *   recordsMax: 1000,
 *   bytesMax: 1024 * 1024,
 *   afterRefusal: 'continue',
 *   signal: stop.signal,
 * })
 * const { number } = await box.append('hello')
 * console.log(number, box.state.kind)
 * box.state$.subscribe(({ kind }) => console.log(kind))
 * for (const { error, records } of box.failed) console.log(error.code, records.length)
 * await box.close()
 * ```
 */
export interface OutboxOptions {
  /** How many records may wait for the server, at least 1. 100,000 by default. */
  readonly recordsMax?: number | undefined
  /** How many metered bytes of records may wait for the server, at least 1 MiB. 64 MiB by default. */
  readonly bytesMax?: number | undefined
  /** Whether records wait behind a parked one (`stop`, the default) or are sent (`continue`). */
  readonly afterRefusal?: AfterRefusal | undefined
  /** Closes the outbox when it aborts. */
  readonly signal?: AbortSignal | undefined
  /**
   * Returns random numbers in [0, 1), for pauses between attempts, ids and nonces. For tests: by default, ids
   * and nonces are secure random numbers, so that other writers of the stream cannot guess them.
   */
  readonly random?: (() => number) | undefined
  /** @internal A copy of the remote stream, where records are examined instead. */
  readonly examined?: Stream | undefined
  /** @internal Returns whether the copy has everything that the server has. */
  readonly isCopyLive?: (() => boolean) | undefined
  /** @internal Called after each append that the server acknowledged. */
  readonly onSent?: (() => void) | undefined
  /** @internal Elects the outbox that sends. By default among the tabs of a browser. */
  readonly coordinator?: Coordinator | undefined
  /** @internal What ends a pause between attempts early. By default the events of a browser. */
  readonly wakeUps?: WakeUps | undefined
}

export const OUTBOX_OPTIONS: MembersOf<OutboxOptions> = {
  recordsMax: 'number',
  bytesMax: 'number',
  afterRefusal: oneOf(['stop', 'continue']),
  signal: assertSignal,
  random: 'function',
  examined: unchecked,
  isCopyLive: 'function',
  onSent: 'function',
  coordinator: 'function',
  wakeUps: 'function',
}

/** Throws `invalid` for options that are not valid. */
export function assertOutboxOptions(options: OutboxOptions, members: Members = OUTBOX_OPTIONS): void {
  assertMembers(options, members, 'options')
  assertLeast('recordsMax', options.recordsMax, 1)
  assertLeast('bytesMax', options.bytesMax, 2 ** 20)
}

function assertLeast(field: string, value: number | undefined, least: number): void {
  if (value === undefined || value >= least) return
  throw invalid(`\`${field}\` must be at least ${least}, not ${value}`, field)
}

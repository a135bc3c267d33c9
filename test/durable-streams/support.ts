import { onTestFinished } from 'vitest'
import {
  createDurableStreamsHandler,
  type DurableStreamsOptions,
} from '../../adapters/durable-streams/index.ts'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import { type Engine, type OpenOptions, open } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'

export const BASIN = 'durable'

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Response>

export interface Service {
  readonly hw: Engine
  readonly clock: VirtualClock
  readonly call: Call
  readonly errors: unknown[]
  /** A handler with other options over the same engine. */
  with(options: Partial<DurableStreamsOptions>): Call
}

/** An engine with a virtual clock behind an open handler. */
export async function startService(
  options: Partial<DurableStreamsOptions> = {},
  engine: Partial<OpenOptions> = {},
): Promise<Service> {
  const clock = testClock({ now: Date.UTC(2026, 0, 1) })
  const hw = await open({ storage: testStorage(), clock, ...engine })
  onTestFinished(() => hw.close())
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const withOptions = (more: Partial<DurableStreamsOptions>): Call => {
    const handler = createDurableStreamsHandler(hw, { basin: BASIN, auth: 'none', onError, ...more })
    return (method, path, init) =>
      handler(new Request(`http://localhost/v1/stream/${path}`, { method, ...init } as RequestInit))
  }
  return { hw, clock, errors, call: withOptions(options), with: withOptions }
}

/** The statuses of calls. */
export async function statusesOf(calls: readonly Promise<Response>[]): Promise<number[]> {
  return (await Promise.all(calls)).map(({ status }) => status)
}

import { onTestFinished } from 'vitest'
import {
  type AccessTokenInput,
  type Engine,
  HeadwaterError,
  type OpenOptions,
  open,
} from '../../../src/index.ts'
import type { AccessScopeInput } from '../../../src/model/access.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { type TestClock, testClock, testStorage } from '../../support/index.ts'

/** Every operation on every resource. */
export const EVERYTHING: AccessScopeInput = {
  basins: { prefix: '' },
  streams: { prefix: '' },
  accessTokens: { prefix: '' },
  opGroups: {
    account: { read: true, write: true },
    basin: { read: true, write: true },
    stream: { read: true, write: true },
  },
}

export interface AccessEngine {
  readonly hw: Engine
  readonly clock: TestClock
  /** The engine for the holder of a new token. */
  readonly issued: (token?: Partial<AccessTokenInput>) => Promise<Engine>
}

/** An engine with a virtual clock, the basin `basin` and its stream `stream`. It closes with the test. */
export async function openWithTokens(options: Partial<OpenOptions> = {}): Promise<AccessEngine> {
  const clock = (options.clock as TestClock | undefined) ?? testClock()
  const hw = await open({ storage: testStorage(), usage: usageMetrics(), ...options, clock })
  onTestFinished(() => hw.close())
  await hw.ensureBasin('basin')
  await hw.basin('basin').ensureStream('stream')
  const issued = async (token: Partial<AccessTokenInput> = {}) =>
    hw.as(await hw.issueAccessToken({ id: 'token', scope: EVERYTHING, ...token }))
  return { hw, clock, issued }
}

/**
 * The code of the error that a call is refused with, `ok` when it is not. Errors that are not the engine's
 * are thrown on.
 */
export async function outcome(call: Promise<unknown>): Promise<string> {
  const error = await failure(call)
  return error === undefined ? 'ok' : error.code
}

/** What a call is refused with. */
export async function failure(call: Promise<unknown>): Promise<HeadwaterError | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
}

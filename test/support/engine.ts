import { onTestFinished } from 'vitest'
import { type Engine, HeadwaterError, type OpenOptions, open, type Stream } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { type TestClock, testClock } from './clock.ts'
import { testStorage } from './storage.ts'

export interface TestEngine {
  readonly hw: Engine
  readonly clock: TestClock
  readonly stream: Stream
}

/** An engine on a virtual clock at 1,000,000 ms, with a basin and a stream. It closes with the test. */
export async function openEngine(options: Partial<OpenOptions> = {}): Promise<TestEngine> {
  const clock = (options.clock as TestClock | undefined) ?? testClock({ now: 1_000_000 })
  const hw = await open({ storage: testStorage(), usage: usageMetrics(), ...options, clock })
  onTestFinished(() => hw.close())
  await hw.ensureBasin('basin')
  await hw.basin('basin').ensureStream('stream')
  return { hw, clock, stream: hw.basin('basin').stream('stream') }
}

export function bodies(batch: {
  readonly records: readonly { readonly body: string | Uint8Array }[]
}): string[] {
  return batch.records.map(({ body }) => (typeof body === 'string' ? body : new TextDecoder().decode(body)))
}

export async function readAll(stream: Stream): Promise<string[]> {
  const all: string[] = []
  const { seqNum } = await stream.checkTail()
  for await (const batch of stream.read({ seqNum: 0, count: Math.max(seqNum, 1) }).batches())
    all.push(...bodies(batch))
  return all
}

/** The code of a `HeadwaterError`, else the error as text. */
export function codeOf(error: unknown): string {
  return HeadwaterError.is(error) ? error.code : String(error)
}

/** `ok`, or the code of the error. */
export function outcomeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'ok', codeOf)
}

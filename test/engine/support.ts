import { beforeAll, describe } from 'vitest'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import {
  type Headwater,
  type OpenOptions,
  open,
  type ReadBatch,
  type Storage,
  type Stream,
} from '../../src/index.ts'
import { testClock } from '../test-clock.ts'
import { testStorage as newStorage, STORAGE_KIND } from '../test-storage.ts'

const KINDS: readonly (readonly [title: string, shared: boolean])[] =
  STORAGE_KIND === 'memory'
    ? [
        ['on a storage that other engines may change', true],
        ['on a storage of this engine alone', false],
      ]
    : [['on the filesystem', false]]

let shared = true

/** Runs the tests on each kind of storage: one that other engines may change, and one that belongs to this engine alone. */
export function onEveryKindOfStorage(define: () => void): void {
  describe.each(KINDS)('%s', (_, isShared) => {
    beforeAll(() => {
      shared = isShared
    })
    define()
  })
}

/** A new storage of the kind that is being tested. */
export function testStorage(): Storage {
  const storage = newStorage()
  return { manifest: { ...storage.manifest, shared }, open: (context) => storage.open(context) }
}

export interface TestEngine {
  readonly hw: Headwater
  readonly clock: VirtualClock
  readonly stream: Stream
}

/** An engine with a virtual clock that stands at 1,000,000 ms, and a stream that exists. */
export async function openEngine(options: Partial<OpenOptions> = {}): Promise<TestEngine> {
  const clock = (options.clock as VirtualClock | undefined) ?? testClock({ now: 1_000_000 })
  const hw = await open({ storage: testStorage(), ...options, clock })
  await hw.ensureBasin('basin')
  await hw.basin('basin').ensureStream('stream')
  return { hw, clock, stream: hw.basin('basin').stream('stream') }
}

export function bodies(batch: Pick<ReadBatch, 'records'>): string[] {
  return batch.records.map(({ body }) => new TextDecoder().decode(body))
}

export async function readAll(stream: Stream): Promise<string[]> {
  const all: string[] = []
  const { seqNum } = await stream.checkTail()
  for await (const batch of stream.read({ seqNum: 0, count: Math.max(seqNum, 1) })) all.push(...bodies(batch))
  return all
}

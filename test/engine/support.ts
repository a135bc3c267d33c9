import { beforeAll, describe } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../adapters/testing/index.ts'
import {
  type Headwater,
  type OpenOptions,
  open,
  type ReadBatch,
  type Storage,
  type Stream,
} from '../../src/index.ts'

let shared = true

/** Runs the tests twice: on a storage that other engines may change, and on one that belongs to this engine alone. */
export function onBothKindsOfStorage(define: () => void): void {
  describe.each([true, false])('on a storage with shared: %s', (isShared) => {
    beforeAll(() => {
      shared = isShared
    })
    define()
  })
}

/** A storage of the kind that is being tested. */
export function testStorage(): Storage {
  const storage = memory()
  return { ...storage, manifest: { ...storage.manifest, shared } }
}

export interface TestEngine {
  readonly hw: Headwater
  readonly clock: VirtualClock
  readonly stream: Stream
}

/** An engine on memory with a virtual clock that stands at 1,000,000 ms, and a stream that exists. */
export async function openEngine(options: Partial<OpenOptions> = {}): Promise<TestEngine> {
  const clock = (options.clock as VirtualClock | undefined) ?? virtualClock({ now: 1_000_000 })
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

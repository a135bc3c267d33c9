import { memory } from '../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../adapters/testing/index.ts'
import { type Headwater, type OpenOptions, open, type ReadBatch, type Stream } from '../../src/index.ts'

export interface TestEngine {
  readonly hw: Headwater
  readonly clock: VirtualClock
  readonly stream: Stream
}

/** An engine on memory with a virtual clock that stands at 1,000,000 ms, and a stream that exists. */
export async function openEngine(options: Partial<OpenOptions> = {}): Promise<TestEngine> {
  const clock = (options.clock as VirtualClock | undefined) ?? virtualClock({ now: 1_000_000 })
  const hw = await open({ storage: memory(), ...options, clock })
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

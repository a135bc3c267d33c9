import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHandler } from '../../../adapters/http/index.ts'
import { type NodeServer, serve } from '../../../adapters/node/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { macrotask } from '../../../src/engine/macrotask.ts'
import { type Headwater, open, type RecordInput, type Storage, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { DirectoryThatFills } from './directory-that-fills.ts'
import { MemoryThatFills } from './memory-that-fills.ts'
import { type Counts, countsOf, type Watched } from './snapshot.ts'

export type StorageKind = 'memory' | 'filesystem'

/** A storage that can be told that it is full. */
export interface FillingStorage extends Storage {
  isFull: boolean
}

export const BASIN = 'endurance'
/** Beside its records, what the memory storage needs for an append. */
const MEMORY_APPEND_BYTES = 400

/** An engine, its handler and its server, and what is measured of them. */
export class World {
  readonly storage: FillingStorage
  readonly clock: VirtualClock
  readonly hw: Headwater
  readonly server: NodeServer
  readonly handler: (request: Request) => Promise<Response>
  readonly random: Prng
  /** One for all that take a signal, and that never aborts. */
  readonly lasting = new AbortController().signal
  readonly errors: unknown[] = []
  readonly #stored = new Map<string, number>()
  #peak = 0
  readonly #remove: () => Promise<void>

  private constructor(
    opened: Pick<World, 'storage' | 'clock' | 'hw' | 'server' | 'handler' | 'random'>,
    errors: unknown[],
    remove: () => Promise<void>,
  ) {
    this.storage = opened.storage
    this.clock = opened.clock
    this.hw = opened.hw
    this.server = opened.server
    this.handler = opened.handler
    this.random = opened.random
    this.errors = errors
    this.#remove = remove
  }

  static async open(kind: StorageKind, seed: number): Promise<World> {
    const directory = mkdtempSync(join(tmpdir(), 'headwater-endurance-'))
    const storage = kind === 'memory' ? new MemoryThatFills(memory()) : new DirectoryThatFills(directory)
    const clock = virtualClock()
    const random = new Prng(seed)
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const hw = await open({ storage, clock, random: () => random.next(), onBackgroundError: onError })
    const handler = createHandler(hw, { open: true, onError })
    const server = await serve(handler, { onError })
    await hw.createBasin(BASIN)
    return new World({ storage, clock, hw, server, handler, random }, errors, () =>
      rm(directory, { recursive: true }),
    )
  }

  get storesInMemory(): boolean {
    return this.storage.manifest.name === 'memory'
  }

  stream(name = 'stream'): Stream {
    return this.hw.basin(BASIN).stream(name)
  }

  /** Appends, and counts what stays in memory because of it. */
  async append(
    stream: Stream,
    records: RecordInput | readonly RecordInput[],
    bytes: number,
  ): Promise<number> {
    const { end } = await stream.append(records)
    if (this.storesInMemory) {
      const { name } = stream
      this.#stored.set(name, (this.#stored.get(name) ?? 0) + bytes + MEMORY_APPEND_BYTES)
    }
    return end.seqNum
  }

  /** Lets go of the records of a stream that was trimmed. */
  async free(stream: Stream): Promise<void> {
    await this.clock.advance('11s')
    this.#stored.set(stream.name, 0)
  }

  /** What the storage keeps in memory, in bytes. */
  get storedBytes(): number {
    return [...this.#stored.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** The most that was in use at a sample, but for what the storage keeps. */
  get peakBytes(): number {
    return this.#peak
  }

  /** To be called at fixed steps of a scenario. */
  sample(bytes: number): void {
    this.#peak = Math.max(this.#peak, bytes - this.storedBytes)
  }

  request(
    method: string,
    path: string,
    init: RequestInit & { headers?: Record<string, string> } = {},
  ): Request {
    const headers = { 'svc-basin': BASIN, ...init.headers }
    return new Request(`http://localhost${path}`, { ...init, method, headers, duplex: 'half' } as RequestInit)
  }

  counts(): Counts {
    const watched: Watched = {
      signals: [this.lasting, this.hw.closing],
      counts: () => {
        const { cachedStreams: _, ...open } = this.hw.stats()
        return { ...open, ...this.server.counts(), timers: this.clock.pending }
      },
    }
    return countsOf(watched)
  }

  /** Waits for a condition that no event announces, one turn of the event loop at a time. Whoever runs the process bounds it. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await macrotask()
  }

  async close(): Promise<void> {
    await this.server.close({ graceMs: 0 })
    await this.hw.close()
    await this.#remove()
  }
}

import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHandler } from '../../../../adapters/http/index.ts'
import { type NodeServer, serve } from '../../../../adapters/node/index.ts'
import { memory } from '../../../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../../../adapters/testing/index.ts'
import { type Engine, open, type RecordInput, type Stream } from '../../../../src/index.ts'
import { macrotask } from '../../../../src/runtime/macrotask.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { Storage } from '../../../../src/storage/contract.ts'
import { openCountsOf } from '../../../support/open-counts.ts'
import { type Counts, countsOf, type Watched } from './snapshot.ts'
import { DirectoryThatFills, MemoryThatFills } from './storages-that-fill.ts'

export type StorageKind = 'memory' | 'filesystem'

/** A storage that can be declared full. */
interface FillingStorage extends Storage {
  isFull: boolean
}

export const BASIN = 'endurance'
/** The memory that the memory storage needs for an append beside its records. */
const MEMORY_APPEND_BYTES = 400

/** An engine with its handler and its server, and the measurements of a scenario. */
export class World {
  readonly storage: FillingStorage
  readonly clock: VirtualClock
  readonly hw: Engine
  readonly server: NodeServer
  readonly handler: (request: Request) => Promise<Response>
  readonly random: Prng
  /** A signal that never aborts, shared by every call that takes one. */
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
    const handler = createHandler(hw, { auth: 'none', onError })
    const server = await serve(hw, { auth: 'none', onError })
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

  /** Appends, and counts the bytes that stay in memory. */
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

  /** Frees the records of a trimmed stream. */
  async free(stream: Stream): Promise<void> {
    await this.clock.advance('11s')
    this.#stored.set(stream.name, 0)
  }

  /** The bytes that the storage keeps in memory. */
  get storedBytes(): number {
    return [...this.#stored.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** The largest sample, without what the storage keeps. */
  get peakBytes(): number {
    return this.#peak
  }

  /** Called at fixed steps of a scenario. */
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
      counts: () => ({
        ...openCountsOf(this.hw),
        ...this.server.counts(),
        timers: this.clock.pending,
      }),
    }
    return countsOf(watched)
  }

  /**
   * Waits, one turn of the event loop at a time, for a condition that no event announces. The parent process
   * limits the time.
   */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await macrotask()
  }

  async close(): Promise<void> {
    await this.server.close({ graceMs: 0 })
    await this.hw.close()
    await this.#remove()
  }
}

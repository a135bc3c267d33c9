import type { Basin } from '../../src/api/basin.ts'
import { OUTBOX_PREFIX } from '../../src/sync/synced-names.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { isEmptyCopy, listNames, localNames } from './known-streams.ts'
import { deleteIfPresent, LocalCopy } from './local-copy.ts'
import { BasinStreamList } from './stream-list.ts'

const STREAMS_MAX = 10_000

interface NamesOptions {
  readonly remote: Basin
  readonly local: Basin
  readonly prefix?: string | undefined
  readonly streamsMax?: number | undefined
}

/** The names that a synced basin knows, as one tab does. */
export class BasinNames {
  readonly prefix: string
  readonly list = new BasinStreamList()
  readonly #options: NamesOptions
  /** The streams of this device, with the times of their creation there. */
  #local: ReadonlyMap<string, number> = new Map()
  /** The streams of the server, with the times of their creation there; undefined until it was asked. */
  #remote: ReadonlyMap<string, number> | undefined
  /** Streams that the server does not have, as far as that was noticed. */
  #missing: ReadonlySet<string> = new Set()
  /** Streams that were opened in this tab, or used in any. */
  readonly #added = new Set<string>()
  readonly #outboxes = new Set<string>()
  /** Whether all outboxes of the device are known. */
  #hasFoundOutboxes = false
  #newest: readonly string[] = []

  constructor(options: NamesOptions) {
    this.#options = options
    this.prefix = options.prefix ?? ''
  }

  /** Adds the name of a stream that is used. */
  add(name: string): void {
    if (this.list.has(name)) return
    this.#added.add(name)
    this.#changed()
  }

  /** Lists the streams of the local basin, of which another tab may have added or removed some. */
  async update(): Promise<void> {
    this.#local = await localNames(this.#options.local, this.prefix)
    this.#changed()
  }

  /** Returns the names that were used, in the given order, and all others, the newest first. */
  byUse(used: readonly string[]): { readonly used: readonly string[]; readonly others: readonly string[] } {
    const known = used.filter((name) => this.list.has(name))
    const isUsed = new Set(known)
    return { used: known, others: this.#newest.filter((name) => !isUsed.has(name)) }
  }

  /** Whether the device has an outbox of the stream, as far as it is known. */
  hasOutbox(name: string): boolean {
    return this.#outboxes.has(name)
  }

  foundOutbox(name: string): void {
    this.#outboxes.add(name)
  }

  /** Finds the streams that have an outbox on this device. */
  async findOutboxes(): Promise<void> {
    const streams = this.#options.local.listAllStreams({ prefix: OUTBOX_PREFIX + this.prefix })
    for await (const { name } of streams) this.#outboxes.add(name.slice(OUTBOX_PREFIX.length))
    this.#hasFoundOutboxes = true
  }

  /**
   * Lists the streams of the server. Creates copies of new streams. Closes and deletes copies without records
   * whose stream no longer exists. Resolves to the names of streams to catch up with.
   */
  async discover(
    limit: ConnectionLimit,
    signal: AbortSignal | undefined,
    close: (name: string) => Promise<void>,
  ): Promise<{ readonly changed: boolean; readonly due: readonly string[] }> {
    const { remote, local, streamsMax = STREAMS_MAX } = this.#options
    const { names, isWhole } = await listNames(remote, this.prefix, streamsMax, limit)
    const before = this.#remote
    const due = [...names].flatMap(([name, createdAt]) => {
      const known = before?.get(name) ?? createdAt
      return this.list.has(name) && known === createdAt && !this.#missing.has(name) ? [] : [name]
    })
    let changed = false
    for (const name of names.keys()) {
      if (this.#local.has(name)) continue
      signal?.throwIfAborted()
      await new LocalCopy(local.stream(name)).ensure()
      changed = true
    }
    const missing = isWhole ? this.list.streams.flatMap(({ name }) => (names.has(name) ? [] : [name])) : []
    const vanished = missing.filter((name) => !this.#missing.has(name))
    const postponed = new Set<string>()
    for (const name of vanished) {
      signal?.throwIfAborted()
      const isKept = this.#added.has(name) || this.#outboxes.has(name)
      if (isKept || !(await isEmptyCopy(local.stream(name)))) continue
      // Records may wait for the stream.
      if (!this.#hasFoundOutboxes) {
        postponed.add(name)
        continue
      }
      this.#local = new Map([...this.#local].filter(([other]) => other !== name))
      this.#changed()
      await close(name)
      if (await isEmptyCopy(local.stream(name))) await deleteIfPresent(local.stream(name))
      changed = true
    }
    this.#remote = names
    this.#missing = new Set(missing.filter((name) => !postponed.has(name)))
    if (changed) {
      this.#local = await localNames(local, this.prefix)
      this.#changed()
    }
    return { changed, due: [...due, ...vanished].filter((name) => this.list.has(name)) }
  }

  #changed(): void {
    this.list.setNames([...this.#local.keys(), ...this.#added])
    const createdAt = (name: string) => this.#remote?.get(name) ?? this.#local.get(name) ?? 0
    const names = this.list.streams.map(({ name }) => name)
    this.#newest = names.sort((one, other) => createdAt(other) - createdAt(one))
  }
}

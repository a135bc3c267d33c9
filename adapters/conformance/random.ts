import {
  blockExpiresAt,
  extendRetention,
  isBlockExpired,
  type RetentionExtension,
  reclaimablePoint,
} from '../../src/core/retention.ts'
import { type WriteState, withAppend } from '../../src/core/sequence.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import type { RetentionPolicy } from '../../src/model/config.ts'
import { Prng } from '../../src/runtime/random.ts'
import type {
  CatalogChange,
  Head,
  JsonValue,
  ListRange,
  ReadRange,
  ReclaimLimits,
  StorageSession,
} from '../../src/storage/contract.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, winners } from './assertions.ts'
import { checkRead, type ExpectedBlock, NOW, WHOLE_LOG } from './blocks.ts'
import { EVERYTHING, put, remove, versionOf } from './catalog.ts'
import type { Cases, ConformanceOptions, Harness } from './harness.ts'
import { type AppendSpec, LogWriter, reclaimAll } from './log-writer.ts'

/** Few, so that operations collide. */
const KEYS = ['a', 'a\u0000', 'aa', 'ab', 'b', '\ue000', '\u{10000}', '\u{10000}a'] as const
const LOGS_MAX = 4

/** Seeded sequences of operations, each compared with {@link Model}. */
export function randomCases({ seeds = [1, 2, 3, 4, 5], randomOperations = 300 }: ConformanceOptions): Cases {
  const walkOf = (seed: number) => async (harness: Harness) => {
    const walk = new RandomWalk(harness, seed)
    await walk.begin()
    for (let i = 0; i < randomOperations; i++) await walk.step(i)
  }
  return Object.fromEntries(
    seeds.map((seed) => [`random operations match a naive model (seed ${seed})`, walkOf(seed)]),
  )
}

interface ModelDocument {
  readonly value: JsonValue
  /** The version as the storage returned it. */
  readonly version: number
}

interface ModelLog {
  readonly head: Head
  readonly appended: readonly ExpectedBlock[]
}

/**
 * A naive implementation of the storage contract, which the random tests compare a storage with. Changes are
 * made on a copy.
 */
class Model {
  readonly documents: Map<string, ModelDocument>
  readonly logs: Map<string, ModelLog>

  constructor(
    documents: ReadonlyMap<string, ModelDocument> = new Map(),
    logs: ReadonlyMap<string, ModelLog> = new Map(),
  ) {
    this.documents = new Map(documents)
    this.logs = new Map(logs)
  }

  copy(): Model {
    return new Model(this.documents, this.logs)
  }

  list({ prefix, after, limit }: ListRange): string[] {
    return [...this.documents.keys()]
      .filter((key) => key.startsWith(prefix) && compareUtf8(key, after) > 0)
      .sort(compareUtf8)
      .slice(0, limit)
  }

  /**
   * Removes the expired blocks at the beginning of each log. Later ones may wait for those before them, and
   * blocks below a trim point may survive if they were merged with others.
   */
  reclaim({ now, trimmedBefore }: ReclaimLimits): void {
    for (const [logId, { head, appended }] of this.logs) {
      const point = reclaimablePoint(head.trims, trimmedBefore)
      const kept: ExpectedBlock[] = []
      for (const { block, mayBeFreed, isExtended } of appended) {
        const hasExpired = isBlockExpired(blockExpiresAt(block, head.extensions), now)
        if (hasExpired && kept.length === 0) continue
        kept.push({
          block,
          isExtended: isExtended || head.extensions !== undefined,
          mayBeFreed: mayBeFreed || hasExpired || block.endSeqNum <= point,
        })
      }
      this.logs.set(logId, { head, appended: kept })
    }
  }
}

class RandomWalk {
  readonly #harness: Harness
  readonly #prng: Prng
  #model = new Model()
  #sessions: StorageSession[] = []
  #logSerial = 0
  /** Never decreases, like the time of an engine. */
  #now = NOW

  constructor(harness: Harness, seed: number) {
    this.#harness = harness
    this.#prng = new Prng(seed)
  }

  async begin(): Promise<void> {
    await this.#openSecond(await this.#harness.open())
  }

  async step(index: number): Promise<void> {
    const operation = this.#prng.pick(OPERATIONS)
    try {
      await this[operation]()
      await this.#compare()
    } catch (error) {
      throw new Error(`operation ${index}, ${operation}: ${(error as Error).message}`, { cause: error })
    }
  }

  async commit(): Promise<void> {
    const next = this.#model.copy()
    const changes: CatalogChange[] = []
    const written = new Set<string>()
    let holds = true
    for (let i = this.#prng.below(4); i >= 0; i--) {
      const key = this.#prng.pick(KEYS)
      if (written.has(key)) continue
      written.add(key)
      const there = next.documents.get(key)?.version ?? null
      const wrong = this.#prng.pick([null, there === null ? 1 : there - 1])
      const expect = this.#prng.pick([undefined, there, wrong])
      if (this.#prng.chance(0.3) && expect !== null) {
        changes.push(remove(key, expect))
        next.documents.delete(key)
      } else {
        const value = { key, at: this.#prng.below(1000) }
        changes.push(put(key, value, expect))
        next.documents.set(key, { value, version: Number.NaN })
      }
      holds &&= expect === undefined || expect === there
    }
    await this.#commit(changes, holds, next)
  }

  async changeLogs(): Promise<void> {
    const next = this.#model.copy()
    const logId = this.#anyLog()
    const log = next.logs.get(logId)
    const kind = this.#prng.pick(['create-log', 'create-log', 'set-epoch', 'delete-log'] as const)
    if (kind === 'create-log') {
      const fresh = next.logs.size < LOGS_MAX
      const created = fresh ? `log-${this.#logSerial++}` : logId
      const epoch = this.#prng.below(5)
      const start = this.#prng.chance(0.2)
        ? { tail: { seqNum: this.#prng.below(1000), timestamp: this.#prng.below(1000) }, fencingToken: 'old' }
        : undefined
      next.logs.set(created, { head: emptyHead(epoch, this.#now, start), appended: [] })
      const begin = start === undefined ? {} : { start }
      const change = { kind, logId: created, epoch, createdAt: this.#now, ...begin }
      await this.#commit([change], fresh || log === undefined, next)
    } else if (kind === 'set-epoch') {
      const epoch = this.#prng.below(5)
      const extended = this.#prng.chance(0.5) ? { extensions: this.#extensionsOf(log) } : {}
      if (log !== undefined) next.logs.set(logId, { ...log, head: { ...log.head, epoch, ...extended } })
      await this.#commit([{ kind, logId, epoch, ...extended }], log !== undefined, next)
    } else if (this.#prng.chance(0.3)) {
      const tail = log?.head.tail.seqNum ?? 0
      const expectSeqNum = this.#prng.pick([undefined, tail, tail + 1])
      next.logs.delete(logId)
      const change = { kind, logId, ...(expectSeqNum === undefined ? {} : { expectSeqNum }) }
      await this.#commit([change], log === undefined || expectSeqNum !== tail + 1, next)
    }
  }

  /** Makes several appends at once, of which one may expect another head. */
  async append(): Promise<void> {
    const logId = this.#anyLog()
    const session = this.#session()
    const log = this.#model.logs.get(logId)
    if (log === undefined) {
      await conflicts(new LogWriter(session, logId).append(), 'append to a missing log')
      return
    }
    const writer = new LogWriter(session, logId, log.head, log.appended)
    const count = this.#prng.pick([1, 1, 1 + this.#prng.below(10)])
    const requests = Array.from({ length: count }, () => writer.request(this.#appendSpec(writer)))
    const failing = this.#prng.chance(0.3) ? this.#prng.below(count) : count
    const wrong = this.#prng.pick([
      { epoch: -1 },
      { seqNum: log.head.tail.seqNum + 100 },
      { appendId: 'another' },
    ])
    const attempts = requests.map((request, i) => {
      const expected = i === failing ? { ...request.expected, ...wrong } : request.expected
      return session.append({ ...request, expected })
    })
    const before = requests.map((_, i) => i).filter((i) => i < failing)
    equal(await winners(attempts, 'append'), before, 'appends that succeeded')
    const head = failing === 0 ? log.head : requests[failing - 1]!.head
    this.#model.logs.set(logId, { head, appended: writer.written.slice(0, log.appended.length + failing) })
  }

  async list(): Promise<void> {
    const range = {
      prefix: this.#prng.pick(['', '', 'a', 'a\u0000', '\ue000', '\u{10000}', 'none']),
      after: this.#prng.pick(['', ...KEYS]),
      limit: 1 + this.#prng.below(KEYS.length),
    }
    const listed = (await this.#session().list('streams', range)).map(({ key }) => key)
    equal(listed, this.#model.list(range), `list of ${JSON.stringify(range)}`)
  }

  async read(): Promise<void> {
    const logId = this.#anyLog()
    const log = this.#model.logs.get(logId)
    const tail = log?.head.tail.seqNum ?? 5
    const start = this.#prng.below(tail + 2)
    const range: ReadRange = {
      from: this.#prng.chance(0.5) ? { seqNum: start } : { timestamp: NOW + start },
      endSeqNum: this.#prng.chance(0.5) ? WHOLE_LOG.endSeqNum : this.#prng.below(tail + 3),
      bytesMax: this.#prng.chance(0.5) ? WHOLE_LOG.bytesMax : this.#prng.below(200),
    }
    checkRead(log?.appended ?? [], range, await this.#session().read(logId, range))
  }

  async reclaim(): Promise<void> {
    this.#now += this.#prng.pick([this.#prng.below(20), this.#prng.below(20), this.#prng.below(3000)])
    const limits = { now: this.#now, trimmedBefore: this.#now - 10, blocksMax: 1 + this.#prng.below(5) }
    await reclaimAll(this.#session(), limits)
    this.#model.reclaim(limits)
  }

  async reopen(): Promise<void> {
    const { manifest, keepsDataWhenClosed } = this.#harness.options
    if (!(keepsDataWhenClosed ?? manifest.durability !== 'none')) return
    await this.#openSecond(await this.#harness.reopen())
  }

  async #openSecond(first: StorageSession): Promise<void> {
    this.#sessions = this.#harness.options.manifest.shared ? [first, await this.#harness.open()] : [first]
  }

  #session(): StorageSession {
    return this.#prng.pick(this.#sessions)
  }

  /** Usually a log that exists. */
  #anyLog(): string {
    const existing = [...this.#model.logs.keys()]
    return existing.length === 0 || this.#prng.chance(0.05) ? 'missing' : this.#prng.pick(existing)
  }

  /** Models a longer retention that was shortened again: later blocks do not have it. */
  #extensionsOf(log: ModelLog | undefined): readonly RetentionExtension[] {
    const { extensions = [], tail } = log?.head ?? emptyHead(0, 0)
    const short: RetentionPolicy = { ageSeconds: 1 }
    const long = this.#prng.pick<RetentionPolicy>([{ ageSeconds: 4 }, { ageSeconds: 6 }, 'infinite'])
    const longer = extendRetention(extensions, { from: short, to: long }, tail.seqNum, this.#now)
    return extendRetention(longer, { from: long, to: short }, tail.seqNum, this.#now)
  }

  #appendSpec({ head }: LogWriter): AppendSpec {
    const spec: AppendSpec = {
      writeState: this.#writeStateOf(head),
      count: 1 + this.#prng.below(4),
      // Timestamps repeat, but never decrease.
      timestamp: Math.max(head.tail.timestamp, NOW + head.tail.seqNum - this.#prng.below(5)),
      expiresAt: this.#prng.pick([null, this.#now + 5, this.#now + 30, NOW + 500, this.#now + 3000]),
      tag: String(this.#prng.below(1000)),
    }
    if (!this.#prng.chance(0.2)) return spec
    const trimPoint = Math.max(head.trimPoint, this.#prng.below(head.tail.seqNum + 1))
    return { ...spec, trimPoint, trimmedAt: this.#now }
  }

  /** Usually that of the head. */
  #writeStateOf(head: Head): WriteState | undefined {
    if (!this.#prng.chance(0.3)) return undefined
    const { tail, writeState } = head
    const producer = { id: `p${this.#prng.below(4)}`, epoch: this.#prng.below(2), seq: this.#prng.below(9) }
    const streamSeq = this.#prng.pick([undefined, 'a', 'b'])
    const closed = this.#prng.chance(0.1) ? { closed: true as const } : undefined
    const next = withAppend(writeState, { producer, streamSeq }, { start: tail, end: tail }, this.#now)
    return { ...next, ...closed }
  }

  async #commit(changes: readonly CatalogChange[], holds: boolean, next: Model): Promise<void> {
    const session = this.#session()
    if (!holds) {
      await conflicts(session.commit(changes), 'commit whose expectation does not hold')
      return
    }
    await session.commit(changes)
    const before = this.#model
    for (const [key, { value }] of next.documents) {
      if (before.documents.get(key)?.value === value) continue
      next.documents.set(key, { value, version: await versionOf(session, key) })
    }
    this.#model = next
  }

  async #compare(): Promise<void> {
    for (const session of this.#sessions) {
      const expected = this.#model.list(EVERYTHING).map((key) => ({ key, ...this.#model.documents.get(key) }))
      equal(await session.list('streams', EVERYTHING), expected, 'documents')
      for (const [logId, { head, appended }] of this.#model.logs) {
        await new LogWriter(session, logId, head, appended).check()
      }
    }
  }
}

const OPERATIONS = [
  'commit',
  'changeLogs',
  'append',
  'append',
  'append',
  'list',
  'read',
  'read',
  'reclaim',
  'reopen',
] as const

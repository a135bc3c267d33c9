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
  Document,
  Head,
  ReclaimLimits,
  StorageSession,
} from '../../src/storage/contract.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, winners } from './assertions.ts'
import { type ExpectedBlock, NOW, WHOLE_LOG } from './blocks.ts'
import { EVERYTHING, put, remove, versionOf } from './catalog.ts'
import type { Cases, ConformanceOptions, Harness } from './harness.ts'
import { type AppendSpec, LogWriter, reclaimAll } from './log-writer.ts'

/** Few, so that operations collide. */
const KEYS = ['a', 'a\u0000', 'aa', 'ab', 'b', '\ue000', '\u{10000}', '\u{10000}a'] as const
const LOGS_MAX = 4

/** Seeded sequences of operations, each compared with a naive model. */
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

const OPERATIONS = [
  ...(['commit', 'createLog', 'createLog', 'setEpoch', 'deleteLog', 'append', 'append', 'append'] as const),
  ...(['read', 'read', 'reclaim', 'reopen'] as const),
]

/** The model: the documents as they are listed, and each log as it was written. */
class RandomWalk {
  readonly #harness: Harness
  readonly #prng: Prng
  readonly #documents = new Map<string, Document>()
  readonly #logs = new Map<string, LogWriter>()
  #sessions: StorageSession[] = []
  #logSerial = 0
  /** Never decreases, like the time of an engine. */
  #now = NOW

  constructor(harness: Harness, seed: number) {
    this.#harness = harness
    this.#prng = new Prng(seed)
  }

  async begin(): Promise<void> {
    this.#sessions = [await this.#harness.open(), await this.#harness.other()]
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
    const changes = new Map<string, CatalogChange>()
    let holds = true
    for (let i = this.#prng.below(4); i >= 0; i--) {
      const key = this.#prng.pick(KEYS)
      if (changes.has(key)) continue
      const there = this.#documents.get(key)?.version ?? null
      const wrong = this.#prng.pick([null, there === null ? 1 : there - 1])
      const expect = this.#prng.pick([undefined, there, wrong])
      const value = { key, at: this.#prng.below(1000) }
      const isRemoved = this.#prng.chance(0.3) && expect !== null
      changes.set(key, isRemoved ? remove(key, expect) : put(key, value, expect))
      holds &&= expect === undefined || expect === there
    }
    const session = await this.#commit([...changes.values()], holds)
    if (!holds) return
    for (const [key, change] of changes) {
      if (change.kind !== 'put') this.#documents.delete(key)
      else this.#documents.set(key, { key, value: change.value, version: await versionOf(session, key) })
    }
  }

  async createLog(): Promise<void> {
    const isNew = this.#logs.size < LOGS_MAX
    const logId = isNew ? `log-${this.#logSerial++}` : this.#anyLog()
    const epoch = this.#prng.below(5)
    const tail = { seqNum: this.#prng.below(1000), timestamp: this.#prng.below(1000) }
    const start = this.#prng.chance(0.2) ? { tail, fencingToken: 'old' } : undefined
    const holds = !this.#logs.has(logId)
    const change = { kind: 'create-log', logId, epoch, createdAt: this.#now, start } as const
    const session = await this.#commit([change], holds)
    if (holds) this.#logs.set(logId, new LogWriter(session, logId, emptyHead(epoch, this.#now, start)))
  }

  async setEpoch(): Promise<void> {
    const logId = this.#anyLog()
    const log = this.#logs.get(logId)
    const epoch = this.#prng.below(5)
    const extended = this.#prng.chance(0.5) ? { extensions: this.#extensionsOf(log?.head) } : {}
    await this.#commit([{ kind: 'set-epoch', logId, epoch, ...extended }], log !== undefined)
    if (log !== undefined) log.head = { ...log.head, epoch, ...extended }
  }

  async deleteLog(): Promise<void> {
    if (this.#prng.chance(0.7)) return
    const logId = this.#anyLog()
    const log = this.#logs.get(logId)
    const tail = log?.head.tail.seqNum ?? 0
    const expectSeqNum = this.#prng.pick([undefined, tail, tail + 1])
    const holds = log === undefined || expectSeqNum !== tail + 1
    await this.#commit([{ kind: 'delete-log', logId, expectSeqNum }], holds)
    if (holds) this.#logs.delete(logId)
  }

  /** Makes several appends at once, of which one may expect another head. */
  async append(): Promise<void> {
    const session = this.#prng.pick(this.#sessions)
    const log = this.#logs.get(this.#anyLog())
    if (log === undefined) {
      await conflicts(new LogWriter(session, 'missing').append(), 'append to a missing log')
      return
    }
    const { head } = log
    const before = log.written.length
    const count = this.#prng.pick([1, 1, 1 + this.#prng.below(10)])
    const requests = Array.from({ length: count }, () => log.request(this.#appendSpec(log.head)))
    const failing = this.#prng.chance(0.3) ? this.#prng.below(count) : count
    const wrong = this.#prng.pick([
      { epoch: -1 },
      { seqNum: head.tail.seqNum + 100 },
      { appendId: 'another' },
    ])
    const attempts = requests.map((request, i) => {
      const expected = i === failing ? { ...request.expected, ...wrong } : request.expected
      return session.append({ ...request, expected })
    })
    const successful = requests.map((_, i) => i).filter((i) => i < failing)
    equal(await winners(attempts, 'append'), successful, 'appends that succeeded')
    log.head = requests[failing - 1]?.head ?? head
    log.written.splice(before + failing)
  }

  async read(): Promise<void> {
    const session = this.#prng.pick(this.#sessions)
    const log = this.#logs.get(this.#anyLog()) ?? new LogWriter(session, 'missing')
    const tail = log.head.tail.seqNum
    const start = this.#prng.below(tail + 2)
    const range = {
      from: this.#prng.chance(0.5) ? { seqNum: start } : { timestamp: NOW + start },
      endSeqNum: this.#prng.chance(0.5) ? WHOLE_LOG.endSeqNum : this.#prng.below(tail + 3),
      bytesMax: this.#prng.chance(0.5) ? WHOLE_LOG.bytesMax : this.#prng.below(200),
    }
    await log.read(range, session)
  }

  async reclaim(): Promise<void> {
    this.#now += this.#prng.pick([this.#prng.below(20), this.#prng.below(20), this.#prng.below(3000)])
    const limits = { now: this.#now, trimmedBefore: this.#now - 10, blocksMax: 1 + this.#prng.below(5) }
    await reclaimAll(this.#prng.pick(this.#sessions), limits)
    for (const { head, written } of this.#logs.values()) {
      written.splice(0, written.length, ...blocksAfterReclaim(written, head, limits))
    }
  }

  async reopen(): Promise<void> {
    const { manifest, keepsDataWhenClosed } = this.#harness.options
    if (!(keepsDataWhenClosed ?? manifest.durability !== 'none')) return
    this.#sessions = [await this.#harness.reopen(), await this.#harness.other()]
  }

  /** Usually the id of a log that exists. */
  #anyLog(): string {
    const existing = [...this.#logs.keys()]
    return existing.length === 0 || this.#prng.chance(0.05) ? 'missing' : this.#prng.pick(existing)
  }

  /** Models a longer retention that was shortened again: later blocks do not have it. */
  #extensionsOf({ extensions = [], tail } = emptyHead(0, 0)): readonly RetentionExtension[] {
    const short: RetentionPolicy = { ageSeconds: 1 }
    const long = this.#prng.pick<RetentionPolicy>([{ ageSeconds: 4 }, { ageSeconds: 6 }, 'infinite'])
    const longer = extendRetention(extensions, { from: short, to: long }, tail.seqNum, this.#now)
    return extendRetention(longer, { from: long, to: short }, tail.seqNum, this.#now)
  }

  #appendSpec(head: Head): AppendSpec {
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

  /** Commits through any session, and returns it. Throws unless the commit conflicts if it must. */
  async #commit(changes: readonly CatalogChange[], holds: boolean): Promise<StorageSession> {
    const session = this.#prng.pick(this.#sessions)
    const committed = session.commit(changes)
    await (holds ? committed : conflicts(committed, 'commit whose expectation does not hold'))
    return session
  }

  async #compare(): Promise<void> {
    const documents = [...this.#documents.values()].sort((a, b) => compareUtf8(a.key, b.key))
    for (const session of new Set(this.#sessions)) {
      equal(await session.list('streams', EVERYTHING), documents, 'documents')
      for (const log of this.#logs.values()) await log.check(session)
    }
  }
}

/**
 * Returns the blocks without those that are certainly freed: the expired ones at the beginning of the log.
 * Later ones may wait for those before them, and blocks below a trim point may survive if they were merged
 * with others.
 */
function blocksAfterReclaim(
  written: readonly ExpectedBlock[],
  { extensions, trims }: Head,
  { now, trimmedBefore }: ReclaimLimits,
): ExpectedBlock[] {
  const point = reclaimablePoint(trims, trimmedBefore)
  const kept: ExpectedBlock[] = []
  for (const { block, mayBeFreed, isExtended } of written) {
    const hasExpired = isBlockExpired(blockExpiresAt(block, extensions), now)
    if (hasExpired && kept.length === 0) continue
    kept.push({
      block,
      isExtended: isExtended || extensions !== undefined,
      mayBeFreed: mayBeFreed || hasExpired || block.endSeqNum <= point,
    })
  }
  return kept
}

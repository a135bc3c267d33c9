import { blockExpiresAt } from '../../../src/core/retention.ts'
import { decodeRecords, encodeRecords } from '../../../src/storage/block-codec.ts'
import type { Head, StorageSession, StoredBlock } from '../../../src/storage/contract.ts'
import { type StreamDocument, streamKey } from '../../../src/storage/documents.ts'
import { Violation } from '../harness/violation.ts'
import { StoredLog, StreamHistory } from '../model/stream-history.ts'
import type { AppendAttempt } from './append-attempt.ts'
import { checkBlock, expiryOf } from './checks/check-block.ts'
import { type CreationRequest, checkFork, checkNames, checkNewDocument } from './checks/check-creation.ts'
import { checkDeletion, checkFreed } from './checks/check-removal.ts'
import type { World } from './world.ts'

/**
 * Reads the storage after each change, independently of the engines, and checks that the change follows from
 * the previous state and the requests.
 */
export class Observer {
  readonly histories: ReadonlyMap<string, StreamHistory>
  readonly attempts = new Map<string, AppendAttempt>()
  /** Requests by id. */
  readonly creations = new Map<string, CreationRequest>()
  readonly #session: StorageSession
  readonly #world: World

  constructor(session: StorageSession, world: World) {
    this.#session = session
    this.#world = world
    this.histories = new Map(world.streams.map((name) => [name, new StreamHistory(name)]))
  }

  history(stream: string): StreamHistory {
    return this.histories.get(stream)!
  }

  async checkChanges(operation: string): Promise<void> {
    const before = this.#documents()
    for (const history of this.histories.values()) await this.#checkStream(history)
    if (operation === 'reclaim') await this.recheck()
    checkNames(before, this.#documents())
  }

  /** Compares everything that is stored with its previous state. */
  async recheck(): Promise<void> {
    for (const history of this.histories.values()) {
      const { log, state } = history.now
      if (log !== undefined) await this.#recheckLog(history, log, state.tail)
    }
  }

  async #recheckLog(history: StreamHistory, log: StoredLog, tail: number): Promise<void> {
    const stored = new Set<number>()
    for (const { data } of await this.#blocks(log.id, 0, tail)) {
      for (const { seqNum, body, timestamp } of decodeRecords(data)) {
        const known = log.records[seqNum]
        stored.add(seqNum)
        const isSame = known?.timestamp === timestamp && Buffer.compare(known.body, body) === 0
        if (!isSame) throw new Violation(`record ${seqNum} stays as it was`, 'another record in its place')
        if (known.isFreed) throw new Violation(`record ${seqNum}, which was freed, stays away`, 'the record')
      }
    }
    for (const record of log.records) {
      if (stored.has(record.seqNum) || record.isFreed) continue
      checkFreed(record, history, this.#world.settings.trimGraceMs, this.#world)
      this.#free(history, record)
    }
  }

  #free({ name }: StreamHistory, record: StoredLog['records'][number]): void {
    record.isFreed = true
    this.#world.note('storage', 'freed', { stream: name, seqNum: record.seqNum })
  }

  #documents(): ReadonlyMap<string, StreamDocument | undefined> {
    return new Map([...this.histories.values()].map(({ name, document }) => [name, document]))
  }

  async #checkStream(history: StreamHistory): Promise<void> {
    const { name, now } = history
    const { basin, time, deletionTime } = this.#world
    const stored = (await this.#session.get('streams', streamKey(basin, name)))?.value as
      | StreamDocument
      | undefined
    // Only the name of a deleted stream with forks is in use.
    const document = stored?.deletedAt === undefined ? stored : undefined
    if (now.log !== undefined && document?.logId !== now.log.id) {
      this.#world.note('storage', checkDeletion(history, deletionTime), { stream: name })
      history.remove(time.now())
    }
    history.document = stored
    if (document === undefined) return
    const { logId, config, epoch } = document
    let creation: CreationRequest | undefined
    if (logId !== history.now.log?.id) creation = await this.#begin(history, document)
    else if (epoch !== history.now.epoch) history.add(time.now(), { config, epoch })
    await this.#checkLog(history, logId, creation)
  }

  /** Adds the first moment of a stream, which is that of its fork if it is one. */
  async #begin(history: StreamHistory, document: StreamDocument): Promise<CreationRequest | undefined> {
    const { logId, config, epoch, createdAt, forkOf } = document
    const creation = checkNewDocument(document, this.creations)
    const first = { log: new StoredLog(logId), config, epoch, writtenAt: createdAt }
    if (creation === undefined || forkOf === undefined) history.add(this.#world.time.now(), first)
    else {
      const head = (await this.#session.head(logId))!
      const blocks = await this.#blocks(logId, 0, head.tail.seqNum)
      const fork = checkFork(document, creation, this.history(forkOf.stream), head, blocks)
      history.add(this.#world.time.now(), { ...first, ...fork })
    }
    return creation
  }

  async #checkLog(history: StreamHistory, logId: string, creation?: CreationRequest): Promise<void> {
    const head = await this.#session.head(logId)
    if (head === undefined) throw new Violation(`\`${history.name}\` has a log`, 'none')
    const { tail, config } = { tail: history.now.state.tail, config: history.now.config! }
    const blocks = head.tail.seqNum === tail ? [] : await this.#blocks(logId, tail, head.tail.seqNum)
    // Storages may merge blocks; records checked before are skipped.
    for (const block of blocks) checkBlock(this.#world, history, block, head)
    if (blocks.length === 0 && head.tail.seqNum > tail) {
      // The first records of a stream may have been freed before it appeared.
      checkBlock(this.#world, history, blockOf(creation, tail, head, expiryOf(config, head.appendedAt)), head)
      for (const record of history.now.log!.records.slice(tail)) {
        checkFreed(record, history, this.#world.settings.trimGraceMs, this.#world)
        this.#free(history, record)
      }
    }
    // Records live longer if the retention was lengthened while they were stored.
    for (const record of history.now.log!.records) {
      const { seqNum, extendedTo } = record
      record.extendedTo = blockExpiresAt({ firstSeqNum: seqNum, expiresAt: extendedTo }, head.extensions)
      const isExtended = record.extendedTo !== extendedTo
      if (isExtended && extendedTo !== null && extendedTo <= this.#world.deletionTime)
        record.mayBeFreed = true
    }
    checkHead(history, head)
  }

  async #blocks(logId: string, from: number, endSeqNum: number): Promise<StoredBlock[]> {
    const blocks: StoredBlock[] = []
    for (let seqNum = from; seqNum < endSeqNum; seqNum = blocks.at(-1)!.endSeqNum) {
      const range = { from: { seqNum }, endSeqNum, bytesMax: Number.POSITIVE_INFINITY }
      const more = await this.#session.read(logId, range)
      if (more.length === 0) break
      blocks.push(...more)
    }
    return blocks
  }
}

/** The first records of a stream as they were stored. Those of a request all have the same timestamp. */
function blockOf(
  creation: CreationRequest | undefined,
  firstSeqNum: number,
  { tail: { seqNum: endSeqNum, timestamp } }: Head,
  expiresAt: number | null,
): StoredBlock {
  const sent = creation?.first?.records ?? []
  const records = sent.map(({ headers, body }, i) => ({ seqNum: firstSeqNum + i, timestamp, headers, body }))
  const [firstTimestamp, lastTimestamp] = [timestamp, timestamp]
  const data = encodeRecords(records)
  return { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes: 0, expiresAt, data }
}

/** The metadata that the storage reports must match the records. */
function checkHead({ name, now }: StreamHistory, head: Head): void {
  const { tail, trimPoint, fencingToken, writeState } = head
  const { state, tailTimestamp } = now
  const producers = ({ producers: all }: Pick<typeof state, 'producers'>) =>
    all.map(({ id, epoch, seq, appendedAt, start, end }) => ({ id, epoch, seq, appendedAt, start, end }))
  const expected = { ...state, tailTimestamp, trimPoint: now.trimPoint, producers: producers(state) }
  const found: typeof expected = {
    tail: tail.seqNum,
    fencingToken,
    isClosed: writeState?.closed ?? false,
    streamSeq: writeState?.streamSeq,
    producers: producers({ producers: writeState?.producers ?? [] }),
    tailTimestamp: tail.timestamp,
    trimPoint,
  }
  if (JSON.stringify(found) === JSON.stringify({ ...found, ...expected })) return
  throw new Violation(`the head of \`${name}\` is ${JSON.stringify(expected)}`, JSON.stringify(found))
}

import { extendedExpiry } from '../../../src/core/retention.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { Document, Head, StorageSession, StoredBlock } from '../../../src/storage/contract.ts'
import { type StreamDocument, streamKey } from '../../../src/storage/documents.ts'
import type { AppendAttempt } from './append-attempt.ts'
import { checkBlock } from './checks/check-block.ts'
import { checkFork, checkNewDocument, expiredFirstRecords } from './checks/check-creation.ts'
import { checkNames } from './checks/check-names.ts'
import { checkDeletion, checkFreed } from './checks/check-removal.ts'
import type { CreationRequest } from './creation-request.ts'
import { StoredLog } from './stored-log.ts'
import { StreamHistory } from './stream-history.ts'
import { Violation } from './violation.ts'

export interface ObserverOptions {
  readonly basin: string
  readonly streams: readonly string[]
  readonly trimGraceMs: number
  readonly onFreed: (stream: string, seqNum: number) => void
  readonly onRemoved: (stream: string, event: string) => void
  /** The latest time that any engine has used. */
  readonly latestTime: () => number
  /** The latest time by which any engine may have deleted what has expired. */
  readonly deletionTime: () => number
}

/**
 * Reads the storage after each change, independently of the engines, and checks that the change follows from
 * the previous state and the requests.
 */
export class Observer {
  readonly histories: ReadonlyMap<string, StreamHistory>
  readonly attempts = new Map<string, AppendAttempt>()
  /** By id. */
  readonly creations = new Map<string, CreationRequest>()
  readonly #session: StorageSession
  readonly #options: ObserverOptions

  constructor(session: StorageSession, options: ObserverOptions) {
    this.#session = session
    this.#options = options
    this.histories = new Map(options.streams.map((name) => [name, new StreamHistory(name)]))
  }

  history(stream: string): StreamHistory {
    return this.histories.get(stream)!
  }

  async checkChanges(operation: string): Promise<void> {
    const before = new Map([...this.histories.values()].map(({ name, document }) => [name, document]))
    for (const history of this.histories.values()) {
      await this.#checkStream(history)
      if (operation === 'reclaim') await this.recheck(history)
    }
    checkNames(before, this.histories)
  }

  /** Compares everything that is stored of a stream with its previous state. */
  async recheck(history: StreamHistory): Promise<void> {
    const { log, state } = history.now
    if (log === undefined) return
    const stored = new Set<number>()
    for (const block of await this.#blocks(log.id, 0, state.tail)) {
      for (const { seqNum, body, timestamp } of decodeRecords(block.data)) {
        const known = log.records[seqNum]
        stored.add(seqNum)
        const isSame = known?.timestamp === timestamp && Buffer.compare(known.body, body) === 0
        if (!isSame) throw new Violation(`record ${seqNum} stays as it was`, 'another record in its place')
        if (known.isFreed) throw new Violation(`record ${seqNum}, which was freed, stays away`, 'the record')
      }
    }
    const { trimGraceMs, latestTime, deletionTime } = this.#options
    for (const record of log.records) {
      if (stored.has(record.seqNum) || record.isFreed) continue
      checkFreed(record, history, trimGraceMs, { latestTime: latestTime(), deletionTime: deletionTime() })
      record.isFreed = true
      this.#options.onFreed(history.name, record.seqNum)
    }
  }

  async #checkStream(history: StreamHistory): Promise<void> {
    const { name, now } = history
    const stored = documentOf(await this.#session.get('streams', streamKey(this.#options.basin, name)))
    // Only the name of a deleted stream with forks is in use.
    const document = stored?.deletedAt === undefined ? stored : undefined
    if (now.log !== undefined && document?.logId !== now.log.id) {
      this.#options.onRemoved(name, checkDeletion(history, this.#options.deletionTime()))
      history.remove()
    }
    history.document = stored
    if (document === undefined) return
    const { logId, config, epoch } = document
    if (logId !== history.now.log?.id) await this.#begin(history, document)
    else if (epoch !== history.now.epoch) history.add({ config, epoch })
    await this.#checkLog(history, logId)
  }

  /** Adds the first moment of a stream, which is that of its fork if it is one. */
  async #begin(history: StreamHistory, document: StreamDocument): Promise<void> {
    const { logId, config, epoch, createdAt, forkOf } = document
    const creation = checkNewDocument(document, this.creations)
    let log = new StoredLog(logId)
    let moment = {}
    if (creation !== undefined && forkOf !== undefined) {
      const head = (await this.#session.head(logId))!
      const blocks = await this.#blocks(logId, 0, head.tail.seqNum)
      const { latestTime, deletionTime } = this.#options
      const latest = { latestTime: latestTime(), deletionTime: deletionTime() }
      const source = this.history(forkOf.stream)
      ;({ log, moment } = checkFork(document, creation, source, { head, blocks }, latest))
    }
    log.creation = creation
    history.add({ log, config, epoch, writtenAt: createdAt, ...moment })
  }

  async #checkLog(history: StreamHistory, logId: string): Promise<void> {
    const head = await this.#session.head(logId)
    if (head === undefined) throw new Violation(`\`${history.name}\` has a log`, 'none')
    const known = history.now.state.tail
    const blocks = head.tail.seqNum === known ? [] : await this.#blocks(logId, known, head.tail.seqNum)
    // Storages may merge blocks; records checked before are skipped.
    for (const block of blocks) checkBlock(history, this.attempts, block, head, this.#options.latestTime())
    if (blocks.length === 0 && head.tail.seqNum > known) this.#addExpired(history, head)
    extendRecords(history.now.log!, head, this.#options.deletionTime())
    checkHead(history, head)
  }

  /** The first records of a stream may have been freed before it appeared. */
  #addExpired(history: StreamHistory, head: Head): void {
    const { latestTime, deletionTime } = this.#options
    const block = expiredFirstRecords(history, head, deletionTime())
    checkBlock(history, this.attempts, block, head, latestTime())
    for (const record of history.now.log!.records.slice(block.firstSeqNum)) {
      record.isFreed = true
      this.#options.onFreed(history.name, record.seqNum)
    }
  }

  async #blocks(logId: string, from: number, endSeqNum: number): Promise<StoredBlock[]> {
    const blocks: StoredBlock[] = []
    for (let seqNum = from; seqNum < endSeqNum; ) {
      const range = { from: { seqNum }, endSeqNum, bytesMax: Number.POSITIVE_INFINITY }
      const more = await this.#session.read(logId, range)
      if (more.length === 0) break
      blocks.push(...more)
      seqNum = more.at(-1)!.endSeqNum
    }
    return blocks
  }
}

/** Records live longer if the retention was lengthened while they were stored. */
function extendRecords({ records }: StoredLog, { extensions }: Head, deletionTime: number): void {
  for (const record of records) {
    const { seqNum, extendedTo } = record
    record.extendedTo = extendedExpiry({ firstSeqNum: seqNum, expiresAt: extendedTo }, extensions)
    const isExtended = record.extendedTo !== extendedTo
    if (isExtended && extendedTo !== null && extendedTo <= deletionTime) record.mayBeFreed = true
  }
}

function documentOf(document: Document | undefined): StreamDocument | undefined {
  return document?.value as unknown as StreamDocument | undefined
}

/** The metadata that the storage reports must match the records. */
function checkHead({ name, now }: StreamHistory, head: Head): void {
  const expected = {
    tail: { seqNum: now.state.tail, timestamp: now.tailTimestamp },
    trimPoint: now.trimPoint,
    fencingToken: now.state.fencingToken,
    ...now.rules,
  }
  const { tail, trimPoint, fencingToken, writeState } = head
  const found = {
    tail: { seqNum: tail.seqNum, timestamp: tail.timestamp },
    trimPoint,
    fencingToken,
    isClosed: writeState?.closed ?? false,
    streamSeq: writeState?.streamSeq,
    producers: (writeState?.producers ?? []).map(({ id, epoch, seq, appendedAt, start, end }) => ({
      id,
      epoch,
      seq,
      appendedAt,
      start,
      end,
    })),
  }
  if (JSON.stringify(found) === JSON.stringify(expected)) return
  throw new Violation(`the head of \`${name}\` is ${JSON.stringify(expected)}`, JSON.stringify(found))
}

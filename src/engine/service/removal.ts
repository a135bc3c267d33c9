import { decideDeleteOnEmpty, decideExpiry } from '../../core/deadlines.ts'
import { extendedExpiry, isExpired } from '../../core/retention.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { StreamRef } from '../../model/names.ts'
import type { SharedSignal } from '../../runtime/abort.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { CatalogChange, Head, StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  type DeadlineDocument,
  deadlineKey,
  getDocument,
  listDocuments,
  putDeadline,
  type StreamDocument,
  streamKey,
  type TokenDocument,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { closedError, conflictError } from '../log/errors.ts'
import { CONFLICTS_MAX, type Commit } from './catalog.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { StreamChanges } from './stream-changes.ts'

const PAGE_STREAMS = 100
/** How long an expired token stays listed, in milliseconds. */
const EXPIRED_LISTED_MS = 86_400_000

export interface RemovalContext {
  readonly session: StorageSession
  readonly changes: StreamChanges
  /** Aborts when the engine closes: long tasks stop early. */
  readonly closing: SharedSignal
}

/** Removes streams, basins and tokens for background work. */
export class Removal {
  readonly #context: RemovalContext

  constructor(context: RemovalContext) {
    this.#context = context
  }

  /**
   * Deletes the streams of a basin that gets no more of them. Once it resolves, no engine acknowledges
   * appends to them. Rejects if one cannot be deleted.
   */
  async deleteStreams(basin: string): Promise<void> {
    const { session, changes, closing } = this.#context
    const range = { prefix: streamKey(basin, ''), after: '', limit: PAGE_STREAMS }
    for (let attempts = 0; attempts < CONFLICTS_MAX; attempts++) {
      const streams = await listDocuments(session, 'streams', range)
      if (streams.length === 0) return
      if (closing.aborted) throw closedError()
      const isTogether = attempts === 0
      const commit = isTogether
        ? commitTogether(session)
        : (removal: readonly CatalogChange[]) => session.commit(removal)
      const remove = async (stream: Versioned<StreamDocument>) => {
        try {
          await changes.removeWithBasin(commit, stream)
          attempts = -1
        } catch (error) {
          // One by one next, and the list shows whether it is left.
          if (!isTogether && !StorageConflict.is(error)) throw error
        }
      }
      const removals = await Promise.allSettled(streams.map(remove))
      for (const removal of removals) if (removal.status === 'rejected') throw removal.reason
      await macrotask()
    }
    throw conflictError()
  }

  /** Deletes the streams of a basin that is being deleted, then the basin. Rejects if one is left. */
  async deleteBasin({ key, version }: Versioned<BasinDocument>): Promise<void> {
    await this.deleteStreams(key)
    await this.#context.session.commit([{ kind: 'delete', collection: 'basins', key, expect: version }])
  }

  /** Deletes a token if it expired more than a day ago. Rejects if it was changed meanwhile. */
  async deleteExpiredToken({ key, value, version }: Versioned<TokenDocument>, now: number): Promise<void> {
    const { expiresAt } = value
    if (expiresAt === null || expiresAt + EXPIRED_LISTED_MS > now) return
    await this.#context.session.commit([{ kind: 'delete', collection: 'tokens', key, expect: version }])
  }

  /**
   * Deletes the stream of a deadline that has passed if it is empty or expired, and otherwise moves the
   * deadline or removes it.
   */
  async checkDeadline(deadline: Versioned<DeadlineDocument>, now: number): Promise<void> {
    const { session, changes } = this.#context
    const due = deadline.value
    const { basin, stream, logId, kind } = due
    const done: CatalogChange = {
      kind: 'delete',
      collection: 'deadlines',
      key: deadline.key,
      expect: deadline.version,
    }
    const document = await getDocument(session, 'streams', streamKey(basin, stream))
    const value = document?.value
    const head = value?.logId === logId ? await session.head(logId) : undefined
    if (document === undefined || value === undefined || head === undefined) {
      // The log of a creation that was not completed has no other trace.
      const isLeft = kind === 'creation' && value?.logId !== logId
      await session.commit(isLeft ? [done, { kind: 'delete-log', logId }] : [done])
      return
    }
    const decision =
      kind === undefined
        ? await this.#decideWhenEmpty(value, head, now)
        : kind === 'expiry'
          ? decideExpiry(value.expiry, { ...value, appendedAt: head.appendedAt }, now)
          : null
    if (decision === 'delete') {
      // An append since then makes the deletion conflict; the deadline stays and is checked again.
      const commit = (removal: readonly CatalogChange[]) => session.commit([...removal, done])
      const expectSeqNum = head.tail.seqNum
      await changes.remove(commit, document, { expectSeqNum })
    } else if (decision === null) {
      await session.commit([done])
    } else {
      const next = putDeadline(decision.checkAt, due)
      const isSame = deadlineKey(decision.checkAt, due) === deadline.key
      await session.commit(isSame ? [next] : [done, next])
    }
  }

  /** Deletes a stream that has expired. Resolves to whether it did, or another engine has. */
  async expire(ref: StreamRef, logId: string, now: number): Promise<boolean> {
    const { session, changes } = this.#context
    for (let attempts = 0; attempts < CONFLICTS_MAX; attempts++) {
      const document = await getDocument(session, 'streams', streamKey(ref.basin, ref.stream))
      const value = document?.value
      const head = value?.logId === logId ? await session.head(logId) : undefined
      if (document === undefined || value === undefined || head === undefined) return true
      const decision = decideExpiry(value.expiry, { ...value, appendedAt: head.appendedAt }, now)
      if (decision !== 'delete') return false
      try {
        const commit = (removal: readonly CatalogChange[]) => session.commit(removal)
        await changes.remove(commit, document, { expectSeqNum: head.tail.seqNum })
        return true
      } catch (error) {
        if (!StorageConflict.is(error)) throw error
      }
    }
    throw conflictError()
  }

  async #decideWhenEmpty({ logId, config }: StreamDocument, head: Head, now: number) {
    const hasRecords = await this.#hasRecords(logId, head, now)
    const { minAgeSeconds } = config.deleteOnEmpty
    return decideDeleteOnEmpty({ minAgeSeconds, hasRecords, lastWriteAt: head.appendedAt }, now)
  }

  async #hasRecords(logId: string, { trimPoint, tail, extensions }: Head, now: number): Promise<boolean> {
    const endSeqNum = tail.seqNum
    let from = trimPoint
    while (from < endSeqNum) {
      const range = { from: { seqNum: from }, endSeqNum, bytesMax: 1 }
      const blocks = await this.#context.session.read(logId, range)
      const last = blocks.at(-1)
      if (last === undefined) return false
      if (blocks.some((block) => !isExpired(extendedExpiry(block, extensions), now))) return true
      from = last.endSeqNum
    }
    return false
  }
}

/** Commits what is passed in one turn in one commit. */
function commitTogether(session: StorageSession): Commit {
  const all: CatalogChange[] = []
  let committed: Promise<void> | undefined
  return (changes) => {
    all.push(...changes)
    committed ??= Promise.resolve().then(() => session.commit(all))
    return committed
  }
}

/** Deletes streams that have expired when they are used, and rejects names that are reserved. */
export class EndedStreams {
  readonly #confirmedClock: ConfirmedClock
  readonly #removal: Removal

  constructor(confirmedClock: ConfirmedClock, removal: Removal) {
    this.#confirmedClock = confirmedClock
    this.#removal = removal
  }

  /**
   * Resolves to the document of a stream; to undefined if the stream has expired, and deletes it then.
   * Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async unlessEnded(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { basin, name, logId, deletedAt } = document
    if (deletedAt !== undefined) throw nameReserved(name)
    const now = await this.#confirmedClock.now()
    return (await this.#removal.expire({ basin, stream: name }, logId, now)) ? undefined : document
  }
}

function nameReserved(name: string): HeadwaterError {
  const message = `stream \`${name}\` was deleted; its name stays reserved until its forks are deleted`
  return new HeadwaterError('stream_deletion_pending', message)
}

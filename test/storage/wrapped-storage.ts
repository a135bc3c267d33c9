import { memory } from '../../adapters/storage/memory/index.ts'
import { splitBlock } from '../../src/storage/block-sizes.ts'
import type {
  Storage,
  StorageContext,
  StorageManifest,
  StorageSession,
  StoredBlock,
} from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'

export type Change = (session: StorageSession, context: StorageContext) => Partial<StorageSession>

/** A memory storage with some calls replaced. */
export function wrapped(change: Change, inner: Storage = memory()): Storage {
  return {
    manifest: inner.manifest,
    async open(context) {
      const session = await inner.open(context)
      return { ...delegating(session), ...change(session, context) }
    },
  }
}

/** Forwards every method, because the methods of a class are not own properties. */
function delegating(session: StorageSession): StorageSession {
  return {
    get: (collection, key) => session.get(collection, key),
    list: (collection, range) => session.list(collection, range),
    commit: (changes) => session.commit(changes),
    head: (logId) => session.head(logId),
    append: (request) => session.append(request),
    read: (logId, range) => session.read(logId, range),
    reclaim: (limits) => session.reclaim(limits),
    measure: (logIds) => session.measure(logIds),
    ...(session.electForBackgroundWork !== undefined && {
      electForBackgroundWork: (onElected: (isElected: boolean) => void) =>
        session.electForBackgroundWork!(onElected),
    }),
    close: () => session.close(),
  }
}

/**
 * Behaves like the durable storages: asynchronous calls, one owner, no notifications, merged blocks.
 */
export function realistic(): Storage {
  const inner = merging()
  const manifest: StorageManifest = { ...inner.manifest, shared: false, notifications: 'none' }
  let held = false
  return {
    manifest,
    async open(context) {
      if (held) throw new StorageFailure('blocked', 'open elsewhere', { nothingWritten: true })
      held = true
      return queued(await inner.open(context), () => {
        held = false
      })
    },
  }
}

function queued(session: StorageSession, release: () => void): StorageSession {
  let queue: Promise<unknown> = Promise.resolve()
  let closed: Promise<void> | undefined
  const enqueue = <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (closed !== undefined) {
      return Promise.reject(new StorageFailure('closed', 'closed', { nothingWritten: true }))
    }
    const turn = new Promise((resolve) => setImmediate(resolve))
    const result = Promise.all([queue, turn]).then(call)
    queue = result.catch(() => {})
    return result
  }
  return {
    get: (collection, key) => enqueue(() => session.get(collection, key)),
    list: (collection, range) => enqueue(() => session.list(collection, range)),
    commit: (changes) => {
      const copy = structuredClone(changes)
      return enqueue(() => session.commit(copy))
    },
    head: (logId) => enqueue(() => session.head(logId)),
    append: (request) => enqueue(() => session.append(request)),
    read: (logId, range) => enqueue(() => session.read(logId, range)),
    reclaim: (limits) => enqueue(() => session.reclaim(limits)),
    measure: (logIds) => enqueue(() => session.measure(logIds)),
    close: () => {
      closed ??= queue.then(() => session.close()).then(release)
      return closed
    },
  }
}

/** Returns blocks in pieces, as large as those of IndexedDB. */
export function splitting(): Storage {
  return wrapped((session) => ({
    async read(logId, range) {
      const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
      const blocks = await session.read(logId, { from, endSeqNum, bytesMax: Number.MAX_SAFE_INTEGER })
      const pieces: StoredBlock[] = []
      let bytes = 0
      let records = 0
      for (const piece of blocks.flatMap((block) => splitBlock(block, 60 * 1024))) {
        const isReached =
          'seqNum' in from ? piece.endSeqNum > from.seqNum : piece.lastTimestamp >= from.timestamp
        if (!isReached) continue
        if (
          piece.firstSeqNum >= endSeqNum ||
          (pieces.length > 0 && (bytes >= bytesMax || records >= recordsMax))
        )
          break
        pieces.push(piece)
        bytes += piece.meteredBytes
        records += piece.endSeqNum - piece.firstSeqNum
      }
      return pieces
    },
  }))
}

/** Merges neighbours as far as the contract allows. */
function merging(): Storage {
  return wrapped((session) => ({
    async read(logId, { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY }) {
      const everything = {
        from: { seqNum: 0 },
        endSeqNum: Number.MAX_SAFE_INTEGER,
        bytesMax: Number.MAX_SAFE_INTEGER,
      }
      const blocks: StoredBlock[] = []
      let bytes = 0
      let records = 0
      if ('seqNum' in from && from.seqNum >= endSeqNum) return blocks
      for (const block of merge(await session.read(logId, everything))) {
        const reached =
          'seqNum' in from ? block.endSeqNum > from.seqNum : block.lastTimestamp >= from.timestamp
        if (!reached) continue
        if (block.firstSeqNum >= endSeqNum) break
        blocks.push(block)
        bytes += block.meteredBytes
        records += block.endSeqNum - block.firstSeqNum
        if (bytes >= bytesMax || records >= recordsMax) break
      }
      return blocks
    },
  }))
}

function merge(blocks: readonly StoredBlock[]): StoredBlock[] {
  const merged: StoredBlock[] = []
  for (const block of blocks) {
    const last = merged.at(-1)
    if (last === undefined || !canMerge(last, block)) {
      merged.push(block)
      continue
    }
    merged[merged.length - 1] = {
      ...last,
      endSeqNum: block.endSeqNum,
      lastTimestamp: block.lastTimestamp,
      meteredBytes: last.meteredBytes + block.meteredBytes,
      data: Buffer.concat([last.data, block.data]),
    }
  }
  return merged
}

function canMerge(one: StoredBlock, next: StoredBlock): boolean {
  return (
    one.endSeqNum === next.firstSeqNum &&
    one.expiresAt === next.expiresAt &&
    next.endSeqNum - one.firstSeqNum <= 1000 &&
    one.meteredBytes + next.meteredBytes <= 1_048_576 &&
    one.data.length + next.data.length <= 2 * 1_048_576 - 128
  )
}

import type { Storage } from '../../../src/index.ts'
import type { StorageContext, StoredBlock } from '../../../src/storage/contract.ts'
import { testStorage, wrapped } from '../../support/index.ts'

/** A shared storage that returns all blocks of a read as one, and whose hints can be held back. */
export interface MergingStorage extends Storage {
  /** While true, changes are not announced. */
  heldBack: boolean
  /** Whether reads return malformed blocks. */
  damage: boolean
  /** Sends all notifications that were held back. */
  sendAll(): void
}

export function merging(): MergingStorage {
  const pending = new Set<() => void>()
  const inner = wrapped(testStorage(), {}, (session) => ({
    read: async (logId, range) => {
      const blocks = await session.read(logId, range)
      if (storage.damage) return blocks.map((block) => ({ ...block, data: new Uint8Array([1]) }))
      return blocks.length === 0 ? [] : [mergeAll(blocks)]
    },
  }))
  const storage: MergingStorage = {
    manifest: inner.manifest,
    heldBack: false,
    damage: false,
    sendAll() {
      storage.heldBack = false
      for (const sendAll of pending) sendAll()
      pending.clear()
    },
    open: (context: StorageContext) =>
      inner.open({
        ...context,
        onLogChanged: (logId) => {
          if (storage.heldBack) pending.add(() => context.onLogChanged(logId))
          else context.onLogChanged(logId)
        },
      }),
  }
  return storage
}

function mergeAll(blocks: readonly StoredBlock[]): StoredBlock {
  const last = blocks.at(-1)!
  return {
    ...blocks[0]!,
    endSeqNum: last.endSeqNum,
    lastTimestamp: last.lastTimestamp,
    meteredBytes: blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    data: Buffer.concat(blocks.map(({ data }) => data)),
  }
}

import { block } from '../../../adapters/conformance/blocks.ts'
import type { Head, StoredBlock } from '../../../src/storage/contract.ts'

/**
 * The blocks of log `a` of {@link makeVersion1}: small ones in a page, a large one in parts, small ones in
 * its row.
 */
export const VERSION_1_BLOCKS: readonly StoredBlock[] = [
  block({ firstSeqNum: 0, count: 2, expiresAt: 5_000, timestamp: 100 }),
  block({ firstSeqNum: 2, count: 3, timestamp: 200 }),
  block({ firstSeqNum: 5, count: 100, bodyBytes: 1_000, timestamp: 300 }),
  block({ firstSeqNum: 105, count: 1, timestamp: 400 }),
  block({ firstSeqNum: 106, count: 4, expiresAt: 9_000, timestamp: 500 }),
]

export const VERSION_1_HEAD: Head = {
  epoch: 3,
  tail: { seqNum: 110, timestamp: 500 },
  trimPoint: 2,
  fencingToken: 'token',
  appendId: 'append-5',
  appendedAt: 600,
  trims: [{ point: 2, at: 550 }],
}

const PART_BYTES = 49_152

/** Creates a database of schema version 1 by hand: log `a`, the remains of a deleted log, and a document. */
export function makeVersion1(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1)
    request.onerror = () => reject(request.error)
    request.onupgradeneeded = () => {
      const db = request.result
      for (const store of ['documents', 'counters', 'logs', 'parts', 'chores']) db.createObjectStore(store)
      db.createObjectStore('pages').createIndex('by-expiry', 'expiresAt')
    }
    request.onsuccess = () => {
      const db = request.result
      const transaction = db.transaction([...db.objectStoreNames], 'readwrite')
      transaction.onabort = () => reject(transaction.error)
      transaction.oncomplete = () => {
        db.close()
        resolve()
      }
      fill(transaction)
    }
  })
}

function fill(transaction: IDBTransaction): void {
  const put = (store: string, value: unknown, key: IDBValidKey) => {
    transaction.objectStore(store).put(value, key)
  }
  const bytes = new TextEncoder().encode('kept')
  put('documents', { key: 'kept', text: '{"a":[1]}', version: 7 }, ['streams', bytes])
  put('counters', { version: 9, commitId: 'some commit' }, 'commit')

  const [first, second, large, ...tail] = VERSION_1_BLOCKS
  const meteredBytes = VERSION_1_BLOCKS.reduce((sum, block) => sum + block.meteredBytes, 0)
  put('pages', { logId: 'a', lastTimestamp: 200, expiresAt: 5_000, parts: 0, ...page([first!, second!]) }, [
    'a',
    5,
  ])
  const { numbers, data } = page([large!])
  const parts = Math.ceil(data.length / PART_BYTES)
  put('pages', { logId: 'a', lastTimestamp: 300, parts, numbers, data: new Uint8Array(0) }, ['a', 105])
  for (let part = 0; part < parts; part++) {
    put('parts', data.slice(part * PART_BYTES, (part + 1) * PART_BYTES), ['a', 105, part])
  }
  const row = { revision: 12, head: VERSION_1_HEAD, meteredBytes, tail: page(tail), freedBelow: 0 }
  put('logs', { ...row, expiryChoreAt: 9_000, trimChoreAt: 550 }, 'a')
  put('chores', 1, ['expired', 9_000, 'a'])
  put('chores', 1, ['trimmed', 550, 'a'])

  put('pages', { logId: 'gone', lastTimestamp: 100, parts: 0, ...page([first!]) }, ['gone', 2])
  put('chores', 1, ['deleted', 0, 'gone'])
}

function page(blocks: readonly StoredBlock[]) {
  let end = 0
  const numbers = blocks.flatMap((one) => {
    end += one.data.length
    const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt } = one
    return [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt ?? Infinity, end]
  })
  return {
    numbers: Float64Array.from(numbers),
    data: Uint8Array.from(blocks.flatMap(({ data }) => [...data])),
  }
}

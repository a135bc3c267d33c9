import { Dexie, type EntityTable } from 'dexie'

interface Row {
  readonly seqNum: number
  readonly body: Uint8Array
}

type Database = Dexie & { readonly records: EntityTable<Row, 'seqNum'> }

/** A log in Dexie: one row per record, as durable as headwater's. */
export class Rows {
  readonly #db: Database
  #next = 0

  constructor() {
    const name = `rows-${crypto.randomUUID()}`
    this.#db = new Dexie(name, { chromeTransactionDurability: 'strict' }) as Database
    this.#db.version(1).stores({ records: 'seqNum' })
  }

  async addBatches(count: number, bodies: () => readonly Uint8Array[]): Promise<void> {
    for (let batch = 0; batch < count; batch++) {
      await this.#db.records.bulkAdd(bodies().map((body) => ({ seqNum: this.#next++, body })))
    }
  }

  async readAll(): Promise<number> {
    let bytes = 0
    for (const { body } of await this.#db.records.orderBy('seqNum').toArray()) bytes += body.length
    return bytes
  }

  delete(): Promise<void> {
    return this.#db.delete()
  }
}

/** Plain IndexedDB: one `put` in its own strict transaction. */
interface Bare {
  put(body: Uint8Array): Promise<void>
  close(): void
}

export async function openBare(): Promise<Bare> {
  const db = await new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(`bare-${crypto.randomUUID()}`)
    request.onupgradeneeded = () => request.result.createObjectStore('records')
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  let next = 0
  return {
    put: (body) =>
      new Promise((resolve, reject) => {
        const transaction = db.transaction('records', 'readwrite', { durability: 'strict' })
        transaction.objectStore('records').put(body, next++)
        transaction.oncomplete = () => resolve()
        transaction.onabort = () => reject(transaction.error)
      }),
    close: () => db.close(),
  }
}

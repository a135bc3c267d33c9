import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { open } from '../../src/index.ts'

// Runs in a page of its own browser for each side, so that none pays for the garbage of another.

const BODY_BYTES = 256

/** Appends one record, and resolves when it is durable. */
type Append = (body: Uint8Array) => Promise<unknown>

const SIDES: Readonly<Record<string, () => Promise<Append>>> = { 'append awaited': ours, 'bare put': bare }

let append: Append
let bodies: readonly Uint8Array[] = []

/** Prepares a side of the comparison, which appends `count` records a turn. */
export async function prepare(side: string, count: number): Promise<void> {
  append = await SIDES[side]!()
  // Generating random bytes takes longer than some of the measured work.
  bodies = Array.from({ length: count }, () => crypto.getRandomValues(new Uint8Array(BODY_BYTES)))
}

/** Repeats the timed part. Resolves to the milliseconds that it took. */
export async function turn(repeats: number): Promise<number> {
  const start = performance.now()
  for (let time = 0; time < repeats; time++) for (const body of bodies) await append(body)
  return performance.now() - start
}

async function ours(): Promise<Append> {
  const headwater = await open({
    storage: indexedDb('bench'),
    onBackgroundError: (error) => {
      // A background failure would make the measured work look faster than it is.
      throw error
    },
  })
  const stream = headwater.basin('bench').stream(crypto.randomUUID())
  await stream.append('first')
  return (body) => stream.append(body)
}

/** Plain IndexedDB: one `put` in its own strict transaction. */
async function bare(): Promise<Append> {
  const db = await new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(`bare-${crypto.randomUUID()}`)
    request.onupgradeneeded = () => request.result.createObjectStore('records')
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  let next = 0
  return (body) =>
    new Promise<void>((resolve, reject) => {
      const transaction = db.transaction('records', 'readwrite', { durability: 'strict' })
      transaction.objectStore('records').put(body, next++)
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error)
    })
}

/** Plain IndexedDB: one `put` in its own strict transaction. */
export interface Bare {
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

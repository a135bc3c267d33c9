/** Uses a database without headwater, as other code of the origin might. */

const held: IDBDatabase[] = []

/** Opens a database and ignores requests to close it. */
export function holdOpen(name: string, version?: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, version)
    request.onerror = () => reject(request.error)
    request.onblocked = () => reject(new Error(`${name} is open elsewhere`))
    request.onsuccess = () => {
      held.push(request.result)
      resolve(request.result.version)
    }
  })
}

export function release(): void {
  for (const db of held.splice(0)) db.close()
}

/** Deletes a database. Rejects if another connection blocks it. */
export function remove(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
    request.onblocked = () => reject(new Error(`${name} is open elsewhere`))
  })
}

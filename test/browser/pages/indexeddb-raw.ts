/** What somebody else does to a database, without headwater. */

const held: IDBDatabase[] = []

/** Opens it and holds on to it, deaf to everybody who wants it closed. */
export function hold(name: string, version?: number): Promise<number> {
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

export function letGo(): void {
  for (const db of held.splice(0)) db.close()
}

/** Rejects when whoever has it open does not let go. */
export function remove(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
    request.onblocked = () => reject(new Error(`${name} is open elsewhere`))
  })
}

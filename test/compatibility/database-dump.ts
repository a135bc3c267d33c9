/** An IndexedDB database. */
export interface DatabaseDump {
  readonly version: number
  readonly stores: readonly StoreDump[]
}

interface StoreDump {
  readonly name: string
  readonly keyPath: string | string[] | null
  readonly autoIncrement: boolean
  readonly indexes: readonly IndexDump[]
  readonly rows: readonly (readonly [key: IDBValidKey, value: unknown])[]
}

interface IndexDump {
  readonly name: string
  readonly keyPath: string | string[]
  readonly unique: boolean
  readonly multiEntry: boolean
}

function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

export async function dumpDatabase(name: string): Promise<DatabaseDump> {
  const db = await resultOf(indexedDB.open(name))
  const transaction = db.transaction([...db.objectStoreNames])
  const stores: StoreDump[] = []
  for (const storeName of db.objectStoreNames) {
    const store = transaction.objectStore(storeName)
    const [keys, values] = [await resultOf(store.getAllKeys()), await resultOf(store.getAll())]
    const indexes = [...store.indexNames].map((indexName) => {
      const { keyPath, unique, multiEntry } = store.index(indexName)
      return { name: indexName, keyPath, unique, multiEntry }
    })
    const { keyPath, autoIncrement } = store
    const rows = keys.map((key, i) => [key, values[i]] as const)
    stores.push({ name: storeName, keyPath, autoIncrement, indexes, rows })
  }
  db.close()
  return { version: db.version, stores }
}

export async function restoreDatabase(name: string, { version, stores }: DatabaseDump): Promise<void> {
  const request = indexedDB.open(name, version)
  request.onupgradeneeded = () => {
    for (const { name: storeName, keyPath, autoIncrement, indexes, rows } of stores) {
      const store = request.result.createObjectStore(storeName, { keyPath, autoIncrement })
      for (const { name: indexName, keyPath: path, unique, multiEntry } of indexes) {
        store.createIndex(indexName, path, { unique, multiEntry })
      }
      for (const [key, value] of rows) store.put(value, keyPath === null ? key : undefined)
    }
  }
  const db = await resultOf(request)
  db.close()
}

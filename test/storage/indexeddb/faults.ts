/**
 * What a transaction meets instead of its end. `abort`: it is aborted, without a reason. `close`: the connection is gone, and nobody said so.
 * `lose-answer`: it is committed, and then the connection is gone.
 */
export type Fault = 'abort' | 'close' | 'lose-answer'

let faults: (Fault | undefined)[] = []
let faulty: IDBTransactionMode = 'readwrite'
let isInstalled = false

/** What happens to the next transactions of a mode, one after another, in this page or process; undefined is nothing. */
export function injectFaults(
  next: readonly (Fault | undefined)[],
  mode: 'readonly' | 'readwrite' = 'readwrite',
): void {
  faults = [...next]
  faulty = mode
  if (isInstalled) return
  isInstalled = true
  const original = IDBDatabase.prototype.transaction
  IDBDatabase.prototype.transaction = function (this: IDBDatabase, ...args: Parameters<typeof original>) {
    // A session puts its reserve by when it has time, and must not take what others are to meet.
    const isReserve = [args[0]].flat().every((name) => name === 'reserve')
    const fault = args[1] === faulty && !isReserve ? faults.shift() : undefined
    if (fault === 'close') this.close()
    const transaction = original.apply(this, args)
    if (fault === 'abort') abortSoon(transaction)
    if (fault === 'lose-answer') loseAnswer(transaction)
    return transaction
  }
}

/** Though it was told to commit. */
function abortSoon(transaction: IDBTransaction): void {
  transaction.commit = () => {}
  queueMicrotask(() => transaction.abort())
}

/** How many of the faults have not happened. */
export function faultsLeft(): number {
  return faults.length
}

/** Its end is told as browsers do when they lose a connection. */
function loseAnswer(transaction: IDBTransaction): void {
  let onAbort: (() => void) | undefined
  Object.defineProperties(transaction, {
    oncomplete: { set() {} },
    onabort: {
      set(listener: () => void) {
        onAbort = listener
      },
    },
  })
  for (const type of ['complete', 'abort']) transaction.addEventListener(type, () => onAbort?.())
}

let spaceBytes = Number.POSITIVE_INFINITY
let isLimited = false

/** From now on transactions that write more bytes than this are undone, as browsers do when the quota is hit; undefined is no limit. */
export function limitSpace(bytes: number | undefined): void {
  spaceBytes = bytes ?? Number.POSITIVE_INFINITY
  if (isLimited) return
  isLimited = true
  const written = new WeakMap<IDBTransaction, number>()
  for (const method of ['put', 'add'] as const) {
    const original = IDBObjectStore.prototype[method]
    IDBObjectStore.prototype[method] = function (this: IDBObjectStore, ...args: Parameters<typeof original>) {
      const { transaction } = this
      const total = (written.get(transaction) ?? 0) + bytesOf(args[0])
      written.set(transaction, total)
      const request = original.apply(this, args)
      if (total > spaceBytes) refuse(transaction)
      return request
    }
  }
}

/** Though it was told to commit. */
function refuse(transaction: IDBTransaction): void {
  if (transaction.error !== null) return
  Object.defineProperty(transaction, 'error', { value: new DOMException('', 'QuotaExceededError') })
  abortSoon(transaction)
}

/** Of the buffers in it, and a few for the rest. */
function bytesOf(value: unknown): number {
  if (ArrayBuffer.isView(value)) return value.byteLength
  if (typeof value !== 'object' || value === null) return 10
  return Object.values(value).reduce<number>((sum, member) => sum + bytesOf(member), 0)
}

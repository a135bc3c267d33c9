/**
 * A fault of a transaction. `abort`: it is aborted without a reason. `close`: the connection was lost without
 * an event. `lose-answer`: it is committed, and then the connection is lost.
 */
export type Fault = 'abort' | 'close' | 'lose-answer'

let faults: (Fault | undefined)[] = []
let faulty: IDBTransactionMode = 'readwrite'
let isInstalled = false

/** Injects faults into the next transactions of a mode, in this page or process; undefined skips one. */
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
    // Sessions allocate the reserve in the background; it must not consume faults.
    const isReserve = [args[0]].flat().every((name) => name === 'reserve')
    const fault = args[1] === faulty && !isReserve ? faults.shift() : undefined
    if (fault === 'close') this.close()
    const transaction = original.apply(this, args)
    if (fault === 'abort') abortSoon(transaction)
    if (fault === 'lose-answer') loseAnswer(transaction)
    return transaction
  }
}

/** Aborts even if `commit` is called. */
function abortSoon(transaction: IDBTransaction): void {
  transaction.commit = () => {}
  queueMicrotask(() => transaction.abort())
}

/** The number of faults that have not occurred yet. */
export function faultsLeft(): number {
  return faults.length
}

/** Reports completion as an abort, as browsers do when they lose a connection. */
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

/**
 * Makes transactions that write more bytes than this fail, as if they hit the quota; undefined removes the
 * limit.
 */
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
      if (total > spaceBytes) failWithQuota(transaction)
      return request
    }
  }
}

function failWithQuota(transaction: IDBTransaction): void {
  if (transaction.error !== null) return
  Object.defineProperty(transaction, 'error', { value: new DOMException('', 'QuotaExceededError') })
  abortSoon(transaction)
}

/** The bytes of the buffers in a value, and an estimate for other members. */
function bytesOf(value: unknown): number {
  if (ArrayBuffer.isView(value)) return value.byteLength
  if (typeof value !== 'object' || value === null) return 10
  return Object.values(value).reduce<number>((sum, member) => sum + bytesOf(member), 0)
}

import { ClassicLevel } from 'classic-level'
import { type KeyValue, orderedKeyValueStorage, type Storage, StorageFailure } from 'headwater/storage'

/**
 * Creates a storage in a LevelDB database, in a directory that is created if it is missing. One engine has it
 * open at a time. An append resolves once the disk has confirmed it.
 */
export function level(directory: string): Storage {
  return orderedKeyValueStorage({
    name: 'level',
    durability: 'power-loss',
    async open() {
      const db = new ClassicLevel<Uint8Array, Uint8Array>(directory, {
        keyEncoding: 'view',
        valueEncoding: 'view',
      })
      await db.open().catch(failRead)
      return {
        get: (key) => db.get(key).catch(failRead),
        // An iterator reads a snapshot.
        scan: ({ from, to, limit }): Promise<KeyValue[]> =>
          db.iterator({ gte: from, lt: to, limit }).all().catch(failRead),
        // LevelDB has a single writer, so the expected values need not be checked.
        async transact({ puts, deletes }) {
          const operations = [
            ...puts.map(([key, value]) => ({ type: 'put' as const, key, value })),
            ...deletes.map((key) => ({ type: 'del' as const, key })),
          ]
          await db.batch(operations, { sync: true }).catch(failWrite)
          return true
        },
        close: () => db.close(),
      }
    },
  })
}

const failRead = (error: unknown): never => fail(error, true)
/** A failed batch may have reached the disk. */
const failWrite = (error: unknown): never => fail(error, false)

function fail(error: unknown, nothingWritten: boolean): never {
  const { code, message } = causeOf(error)
  throw new StorageFailure(kindOf(code, message), `LevelDB failed: ${message}`, {
    nothingWritten,
    cause: error,
  })
}

function kindOf(code: unknown, message: string): StorageFailure['kind'] {
  if (code === 'LEVEL_LOCKED') return 'blocked'
  if (code === 'LEVEL_CORRUPTION') return 'corrupt'
  return /no space left/i.test(message) ? 'quota' : 'io'
}

/** `open` fails with the reason as its cause. */
function causeOf(error: unknown): { readonly code?: unknown; readonly message: string } {
  const { cause = error } = error as { readonly cause?: unknown }
  return cause as Error & { readonly code?: unknown }
}

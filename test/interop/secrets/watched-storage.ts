import type { Storage, StorageSession } from '../../../src/index.ts'
import { wrapped } from '../../engine/wrapped-storage.ts'
import { testStorage } from '../../test-storage.ts'
import type { Evidence } from './evidence.ts'

type Method = Exclude<keyof StorageSession, 'close'>
const METHODS: readonly Method[] = ['get', 'list', 'commit', 'head', 'append', 'read', 'reclaim', 'measure']

/** A storage in memory that notes what is written to it, and fails when it is told to. */
export interface WatchedStorage {
  readonly storage: Storage
  /** Makes calls of one method fail until the call given has come to its end. */
  failing<Result>(method: Method, error: () => unknown, call: () => Promise<Result>): Promise<Result>
}

export function watchedStorage(evidence: Evidence): WatchedStorage {
  let failure: { method: Method; error: () => unknown } | undefined
  const storage = wrapped(testStorage(), {}, (session) =>
    Object.fromEntries(
      METHODS.map((method) => [
        method,
        (...args: unknown[]) => {
          if (method === 'commit' || method === 'append') evidence.add('stored', method, args)
          if (failure?.method === method) return Promise.reject(failure.error())
          return (session[method] as (...args: unknown[]) => Promise<unknown>)(...args)
        },
      ]),
    ),
  )
  return {
    storage,
    async failing(method, error, call) {
      failure = { method, error }
      try {
        return await call()
      } finally {
        failure = undefined
      }
    },
  }
}

export { METHODS as STORAGE_METHODS }

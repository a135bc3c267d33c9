import type { Storage } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { testStorage, wrapped } from '../../support/index.ts'
import type { Evidence } from './evidence.ts'

type Method = Exclude<keyof StorageSession, 'close'>
const METHODS: readonly Method[] = ['get', 'list', 'commit', 'head', 'append', 'read', 'reclaim', 'measure']

/** A memory storage that records what is written to it, and fails on request. */
export interface WatchedStorage {
  readonly storage: Storage
  /** Makes the calls of one method fail while `call` runs. */
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

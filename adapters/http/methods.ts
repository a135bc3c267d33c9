import type { Operation } from '../../src/index.ts'
import type { Endpoint } from './request.ts'

export interface Method {
  readonly endpoint: Endpoint
  /**
   * The operations of which the caller needs at least one. `'public'` requires no token; `'metrics'` requires
   * `account-metrics` unless the option `publicMetrics` is set.
   */
  readonly operations: readonly Operation[] | 'public' | 'metrics'
}

/** By HTTP method. `GET` also serves `HEAD`, unless that has an entry. */
export type Methods = Readonly<Record<string, Method>>

/** An endpoint that requires one of these operations. */
export function permitted(endpoint: Endpoint, ...operations: readonly Operation[]): Method {
  return { endpoint, operations }
}

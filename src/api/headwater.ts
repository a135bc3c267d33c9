/// <reference lib="esnext.disposable" preserve="true" />
// The declarations of the package use `Symbol.asyncDispose`, which no stable `lib` includes.

import type { AccessTokenInfo, AccessTokenInput } from '../model/access.ts'
import type { BasinConfigInput } from '../model/config.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../model/info.ts'
import type { AccountMetricSet, Metric, MetricsQuery } from '../model/metrics.ts'
import type { MembersOf } from '../model/validation.ts'
import type { Basin, CreateOptions } from './basin.ts'
import type { CallOptions } from './call-options.ts'
import { type ListAllQuery, listAll } from './lists.ts'

/** Options of a basin handle. */
export interface BasinOptions {
  /**
   * Whether appends create a missing basin and stream. By default as `open` or `connect` was called
   * (`autoCreate`), and false for `hw.as(token)`.
   */
  readonly autoCreate?: boolean | undefined
}

export const BASIN_OPTIONS: MembersOf<BasinOptions> = { autoCreate: 'boolean' }

/**
 * All basins of one storage (`open`) or of one server (`connect`).
 *
 * Errors of all methods: `invalid` for malformed input, `storage`, `transaction_conflict` when other engines
 * kept changing the same object first, `closed` once the engine or the client is closed, and for holders of
 * access tokens `authn` and `permission_denied`.
 */
export abstract class Headwater {
  /** Aborts when the engine or the client begins to close. */
  abstract readonly closing: AbortSignal

  /**
   * Returns a handle of a basin, whether it exists or not. Throws `invalid` for a name that is not a string,
   * and for malformed options.
   */
  abstract basin(name: string, options?: BasinOptions): Basin

  /**
   * Creates a basin (name: 1 to 48 lower-case letters, digits and hyphens). Rejects with
   * `resource_already_exists` if it exists, unless the request token shows that the call is a repetition, and
   * with `basin_deletion_pending` if it is being deleted.
   */
  abstract createBasin(
    name: string,
    config?: BasinConfigInput,
    options?: CreateOptions,
  ): Promise<Provisioned<BasinInfo>>

  /**
   * Makes the basin exist with exactly this configuration: creates it, changes it, or does nothing. Rejects
   * with `basin_deletion_pending` if it is being deleted.
   */
  abstract ensureBasin(
    name: string,
    config?: BasinConfigInput,
    options?: CallOptions,
  ): Promise<Provisioned<BasinInfo>>

  /** Lists basins in the order of their names, at most 1,000 per page. */
  abstract listBasins(query?: ListQuery, options?: CallOptions): Promise<Page<BasinInfo>>

  /**
   * Issues an access token and resolves to it. It is not stored and cannot be shown again. Rejects with
   * `resource_already_exists` if the id is in use, and with `permission_denied` if the token would permit
   * more than its issuer may do.
   */
  abstract issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string>

  /** Lists access tokens by id, at most 1,000 per page. Expired tokens stay listed for a day. */
  abstract listAccessTokens(query?: ListQuery, options?: CallOptions): Promise<Page<AccessTokenInfo>>

  /** Revokes an access token, which ends its sessions. Rejects with `access_token_not_found`. */
  abstract revokeAccessToken(id: string, options?: CallOptions): Promise<void>

  /** Resolves to usage metrics of the account. Rejects with `unsupported` unless usage is metered. */
  abstract metrics(query: MetricsQuery<AccountMetricSet>, options?: CallOptions): Promise<readonly Metric[]>

  /**
   * Ends open reads and sessions with `closed`, waits for the other calls that were made before it, and frees
   * the storage or the connections. Batches that a session or producer accepted before are appended. Later
   * calls reject with `closed`, but a second call of `close` waits for the first.
   */
  abstract close(options?: CallOptions): Promise<void>

  /** Closes for `await using`. */
  abstract [Symbol.asyncDispose](): Promise<void>

  /** Iterates over all basins, one page at a time. */
  listAllBasins(query: ListAllQuery = {}, options?: CallOptions): AsyncGenerator<BasinInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listBasins(page, options),
      ({ name }) => name,
    )
  }

  /** Iterates over all access tokens, one page at a time. */
  listAllAccessTokens(
    query: ListAllQuery = {},
    options?: CallOptions,
  ): AsyncGenerator<AccessTokenInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listAccessTokens(page, options),
      ({ id }) => id,
    )
  }
}

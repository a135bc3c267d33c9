import { EMPTY_PAGE, scopedQuery, withinSet } from '../../core/scoped-list.ts'
import { type AccessTokenInfo, type AccessTokenInput, accessScope } from '../../model/access.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import type { TokenService } from '../services.ts'
import type { Gate } from './gate.ts'

/** Access tokens, as a caller may issue, list and revoke them. */
export class GatedTokens implements TokenService {
  readonly #gate: Gate
  readonly #tokens: TokenService

  constructor(gate: Gate, tokens: TokenService) {
    this.#gate = gate
    this.#tokens = tokens
  }

  async issue(given: AccessTokenInput): Promise<string> {
    await this.#gate.permit('issue-access-token')
    // A copy: what is checked is what is issued.
    const input = copied(given)
    return this.#gate.run('issue-access-token', { tokenId: input.id }, (_, identity) =>
      this.#tokens.issue(input, identity),
    )
  }

  list(query: ListQuery): Promise<Page<AccessTokenInfo>> {
    return this.#gate.run('list-access-tokens', {}, async ({ scope }) => {
      const scoped = scopedQuery(scope.accessTokens, query)
      if (scoped === undefined) return EMPTY_PAGE
      return withinSet(scope.accessTokens, await this.#tokens.list(scoped), ({ id }) => id)
    })
  }

  revoke(id: string): Promise<void> {
    return this.#gate.run('revoke-access-token', { tokenId: id }, () => this.#tokens.revoke(id))
  }
}

function copied({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInput): AccessTokenInput {
  return { id, expiresAt, autoPrefixStreams, scope: accessScope(scope) }
}

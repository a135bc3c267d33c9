import type { Headwater } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { accessTokenPageJson } from '../../src/wire/json-access.ts'
import type { IssueRequest } from './issue-request.ts'
import { decodeTokenPage, type TokenPage } from './token-page.ts'

/** Access tokens, wherever they are. Rejects with {@link CliError} or `HeadwaterError`. */
export interface AccessTokens {
  /** Resolves to the token. */
  issue(request: IssueRequest): Promise<string>
  list(query: { readonly prefix: string; readonly startAfter: string }): Promise<TokenPage>
  revoke(id: string): Promise<void>
}

/** Those of an engine that this process has open. */
export function ownTokens(hw: Headwater): AccessTokens {
  return {
    issue: ({ input }) => hw.issueAccessToken(input),
    list: async (query) => decodeTokenPage(utf8(accessTokenPageJson(await hw.listAccessTokens(query)))),
    revoke: (id) => hw.revokeAccessToken(id),
  }
}

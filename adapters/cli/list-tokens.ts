import { compareUtf8 } from '../../src/model/compare-utf8.ts'
import type { AccessTokens } from './access-tokens.ts'
import { CliError } from './failure.ts'
import type { TokenInfo } from './token-page.ts'

/** Every token whose id has the prefix, page after page. */
export async function allTokens(service: AccessTokens, prefix: string): Promise<TokenInfo[]> {
  const tokens: TokenInfo[] = []
  let startAfter = ''
  for (;;) {
    const page = await service.list({ prefix, startAfter })
    for (const token of page.access_tokens) tokens.push(token)
    if (!page.has_more) return tokens
    const last = page.access_tokens.at(-1)?.id ?? ''
    // Otherwise the next page could be this one again, for ever.
    if (compareUtf8(last, startAfter) <= 0) throw new CliError(1, 'the service lists tokens in no order')
    startAfter = last
  }
}

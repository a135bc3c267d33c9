import { utf8 } from '../../model/bytes.ts'
import { sha256 } from './digest.ts'
import { authnError } from './errors.ts'
import type { Identity } from './identity.ts'
import type { OpenTokens, TokenWatch } from './open-tokens.ts'
import { TOKEN_CHARACTERS_MAX } from './token-text.ts'
import type { Tokens } from './tokens.ts'

/** Whoever presents a token. The token is looked up at each call: what was revoked is refused from then on. */
export class TokenHolder {
  readonly #token: string
  readonly #tokens: Tokens
  readonly #open: OpenTokens
  #digest: string | undefined

  constructor(token: string, tokens: Tokens, open: OpenTokens) {
    this.#token = token
    this.#tokens = tokens
    this.#open = open
  }

  /** Rejects with 401 `authn`. */
  async identify(): Promise<Identity> {
    const isText = typeof this.#token === 'string' && this.#token !== ''
    if (!isText || this.#token.length > TOKEN_CHARACTERS_MAX) throw authnError()
    this.#digest ??= await sha256(utf8(this.#token))
    return this.#tokens.identify(this.#token, this.#digest)
  }

  follow(identity: Identity): Promise<TokenWatch> {
    return this.#open.follow(identity)
  }
}

import type { EngineContext } from '../context.ts'
import { OpenTokens } from './open-tokens.ts'
import { TokenHolder } from './token-holder.ts'
import { Tokens } from './tokens.ts'

/** Who may do what in one open engine. */
export class Access {
  readonly tokens: Tokens
  readonly #open: OpenTokens

  constructor(engine: EngineContext) {
    this.#open = new OpenTokens(engine)
    this.tokens = new Tokens(engine, this.#open)
  }

  /** Whoever presents this token, valid or not. */
  holderOf(token: string): TokenHolder {
    return new TokenHolder(token, this.tokens, this.#open)
  }

  close(): void {
    this.#open.close()
  }
}

import type { EngineContext } from '../context.ts'
import { type GatedServices, gated } from '../gate/index.ts'
import { counted } from '../rest.ts'
import type { CallerServices, TokenService } from '../services.ts'
import { OpenTokens } from './open-tokens.ts'
import { TokenHolder } from './token-holder.ts'
import { Tokens } from './tokens.ts'

/** Who may do what in one open engine. */
export class Access {
  readonly tokens: Tokens
  /** What callers do with tokens. */
  readonly service: TokenService
  readonly #open: OpenTokens

  constructor(engine: EngineContext) {
    this.#open = new OpenTokens(engine)
    this.tokens = new Tokens(engine, this.#open)
    this.service = counted('tokens', this.tokens, engine.usage)
  }

  /** The services, as whoever presents this token may use them, valid or not. */
  servicesFor(token: string, services: CallerServices): GatedServices {
    return gated(services, new TokenHolder(token, this.tokens, this.#open))
  }

  close(): void {
    this.#open.close()
  }
}

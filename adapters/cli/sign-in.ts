import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Clock, type Engine, systemClock } from '../../src/index.ts'
import type { AccessScopeInput } from '../../src/model/access.ts'
import type { NodeHandler } from '../node/index.ts'

const TOKEN_ID = 'console-sign-in'
const TOKEN_VALID_MS = 12 * 3_600_000
const CODE_VALID_MS = 600_000
const UNKNOWN_CODE = 'the link was used, or has expired; restart the server for a new one'

const EVERYTHING: AccessScopeInput = {
  basins: { prefix: '' },
  streams: { prefix: '' },
  accessTokens: { prefix: '' },
  opGroups: {
    account: { read: true, write: true },
    basin: { read: true, write: true },
    stream: { read: true, write: true },
  },
}

/**
 * The sign-in of the console by a printed link. The link has a code instead of a token: who finds it later,
 * in a terminal or a history, can do nothing with it. The page exchanges it, once and within ten minutes, for
 * an access token that replaces the one of an earlier sign-in.
 */
export class SignIn {
  readonly #hw: Engine
  readonly #clock: Clock
  /** The hash of the code; undefined once it was used. */
  #hash: Buffer | undefined
  #endsAt = 0

  constructor(hw: Engine, clock: Clock = systemClock) {
    this.#hw = hw
    this.#clock = clock
  }

  /** Returns a new code, which replaces an earlier one. */
  offer(): string {
    const code = randomBytes(16).toString('base64url')
    this.#hash = hashOf(code)
    this.#endsAt = this.#clock.now() + CODE_VALID_MS
    return code
  }

  /** Resolves to an access token with every permission; undefined if the code is not, or no longer, valid. */
  async exchange(code: string): Promise<string | undefined> {
    if (this.#hash === undefined || !timingSafeEqual(this.#hash, hashOf(code))) return undefined
    this.#hash = undefined
    const now = this.#clock.now()
    if (now >= this.#endsAt) return undefined
    await this.#hw.revokeAccessToken(TOKEN_ID).catch(() => {})
    const expiresAt = new Date(now + TOKEN_VALID_MS)
    return this.#hw.issueAccessToken({ id: TOKEN_ID, scope: EVERYTHING, expiresAt })
  }

  /** Wraps a request listener: answers `POST /sign-in`, whose bearer token is the code. */
  around(handler: NodeHandler): NodeHandler {
    return (req, res, next) => {
      if (req.method !== 'POST' || req.url !== '/sign-in') return handler(req, res, next)
      const reply = (status: number, body: object) => {
        res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
        res.end(JSON.stringify(body))
      }
      this.exchange(req.headers.authorization?.replace(/^Bearer /, '') ?? '').then(
        (token) =>
          token === undefined
            ? reply(401, { code: 'authn', message: UNKNOWN_CODE })
            : reply(200, { access_token: token }),
        () => reply(500, { code: 'internal', message: 'the access token could not be issued' }),
      )
    }
  }
}

function hashOf(code: string): Buffer {
  return createHash('sha256').update(code).digest()
}

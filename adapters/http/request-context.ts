import type { Headwater, Stream } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { decodeStreamConfigHeader } from '../../src/wire/json-provision.ts'
import { usedWord, wordOfRequest } from '../../src/wire/vendor-headers.ts'
import { type VendorHeader, vendorHeaderName } from '../../src/wire/words.ts'
import { basinAddress } from './basin-address.ts'
import { headerText } from './header-text.ts'
import type { Settings } from './options.ts'
import { pathParameter } from './path-parameter.ts'
import type { RouteMatch } from './router.ts'

/** One request, and what its endpoint asks of it. */
export class RequestContext {
  readonly request: Request
  /** The engine as this request may use it. */
  readonly hw: Headwater
  readonly settings: Settings
  /** The vendor word of the response. */
  readonly word: string
  readonly #match: RouteMatch

  constructor(request: Request, hw: Headwater, match: RouteMatch, settings: Settings) {
    this.request = request
    this.hw = hw
    this.settings = settings
    this.word = wordOfRequest(request.headers, settings.words)
    this.#match = match
  }

  get search(): string {
    return new URL(this.request.url).search
  }

  /** Throws 400 `bad_path`, also for what `problemOf` has against the name when its usual rules are not enough. */
  pathParameter(name: 'basin' | 'stream' | 'id', problemOf?: (name: string) => string | undefined): string {
    return pathParameter(this.#match, name, problemOf)
  }

  /** The basin that a request below `/v1/streams` is addressed to. Throws 400 `bad_header`. */
  basinAddress(): string {
    return basinAddress(this.request, this.settings)
  }

  header(name: string): string | null {
    return this.request.headers.get(name)
  }

  /** Throws 400 `bad_header`. */
  vendorHeader(header: VendorHeader): string | undefined {
    return headerText(this.request.headers, header, this.settings.words)
  }

  vendorHeaderName(header: VendorHeader): string {
    return vendorHeaderName(this.word, header)
  }

  /**
   * A header of the response: by the word that the request used, or else by all of them, because published clients use none on account
   * calls and yet expect their own.
   */
  responseHeaders(header: VendorHeader, value: string): Record<string, string> {
    const word = usedWord(this.request.headers, this.settings.words)
    const words = word === undefined ? this.settings.words : [word]
    return Object.fromEntries(words.map((word) => [vendorHeaderName(word, header), value]))
  }

  /**
   * A stream for a data operation, which only the basin's configuration lets create it; then with the configuration of the header
   * `svc-stream-config`. Throws 400 `bad_header`, 422 `invalid`.
   */
  stream(basin: string, name: string, encryptionKey?: string): Stream {
    const header = this.vendorHeader('stream-config')
    const config = header === undefined ? undefined : decodeStreamConfigHeader(header)
    return this.hw.basin(basin, { autoCreate: false }).stream(name, { config, encryptionKey })
  }

  /** Tells the owner of the handler what the client is not told. */
  report(error: unknown): void {
    if (!HeadwaterError.is(error) || error.status === 500) this.settings.onError(error, this.request)
  }
}

import { invalid } from '../../src/model/errors.ts'
import { assertOptions, assertText, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { HEADER_PREFIXES, type HeaderPrefix } from '../../src/wire/headers.ts'
import { settingsOf } from '../client/options.ts'

/**
 * Options of the console.
 *
 * ```ts
 * const unmount = mountConsole(document.body, {
 *   fetch: (request) => fetch(request),
 *   url: 'https://streams.example.com',
 *   basinUrl: 'https://{basin}.streams.example.com',
 *   headerPrefix: 'svc',
 *   theme: 'dark',
 * })
 * ```
 */
export interface ConsoleOptions {
  /**
   * Sends a request: `createHandler(hw, { auth: 'none' })` for an engine in this page, `fetch` for a server,
   * or any function of that shape.
   */
  readonly fetch: (request: Request) => Promise<Response>
  /**
   * The address of the server, such as `https://streams.example`. None by default, for an engine in this
   * page, and no curl commands are offered.
   */
  readonly url?: string | undefined
  /**
   * The address of the server's basins if each has a host of its own, such as `https://{basin}.example`.
   * `url` by default, with the basin in a header.
   */
  readonly basinUrl?: string | undefined
  /** The prefix of protocol headers: `s2` for the hosted service. Default `svc`. */
  readonly headerPrefix?: HeaderPrefix | undefined
  /** The colours. Default `system`: those of the browser. */
  readonly theme?: 'system' | 'light' | 'dark' | undefined
}

const OPTIONS: MembersOf<ConsoleOptions> = {
  fetch: 'function',
  url: assertText,
  basinUrl: assertText,
  headerPrefix: oneOf(HEADER_PREFIXES),
  theme: oneOf(['system', 'light', 'dark']),
}

/** The URL of an engine in this page: a request needs one, though no server has it. */
export const NO_ADDRESS = 'http://localhost'

/** Throws `invalid` for invalid options. */
export function assertConsoleOptions(options: ConsoleOptions): void {
  assertOptions(options, OPTIONS)
  const { fetch, url = NO_ADDRESS, basinUrl } = options
  if (fetch === undefined) throw invalid('`fetch` is required, such as `createHandler(hw)`', 'fetch')
  settingsOf({ url })
  if (basinUrl !== undefined && !/^https?:\/\/./.test(basinUrl)) {
    throw invalid(`\`basinUrl\` must be an http or https URL, not ${JSON.stringify(basinUrl)}`, 'basinUrl')
  }
}

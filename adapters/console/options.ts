import { invalid } from '../../src/model/errors.ts'
import { assertOptions, assertText, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { settingsOf } from '../client/options.ts'

/** Options of the console. */
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
  /** The prefix of protocol headers: `svc` or `s2`. Default `svc`. */
  readonly headerPrefix?: string | undefined
  /** The colours. Default `system`: those of the browser. */
  readonly theme?: 'system' | 'light' | 'dark' | undefined
}

const OPTIONS: MembersOf<ConsoleOptions> = {
  fetch: 'function',
  url: assertText,
  basinUrl: assertText,
  headerPrefix: assertText,
  theme: oneOf(['system', 'light', 'dark']),
}

/** The URL of an engine in this page: a request needs one, though no server has it. */
export const NO_ADDRESS = 'http://localhost'

/** Throws `invalid` for invalid options. */
export function assertConsoleOptions(options: ConsoleOptions): void {
  assertOptions(options, OPTIONS)
  const { fetch, url = NO_ADDRESS, basinUrl, headerPrefix } = options
  if (fetch === undefined) throw invalid('`fetch` is required, such as `createHandler(hw)`', 'fetch')
  settingsOf({ url, headerPrefix })
  if (basinUrl !== undefined && !/^https?:\/\/./.test(basinUrl)) {
    throw invalid(`\`basinUrl\` must be an http or https URL, not ${JSON.stringify(basinUrl)}`, 'basinUrl')
  }
}

import { TOKEN_CHARACTERS_MAX } from '../../src/engine/access/token-text.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { shown } from './printable.ts'
import { ROOT_TOKEN_VARIABLE } from './root-token.ts'

const TOKEN_VARIABLE = 'HEADWATER_TOKEN'
const DEFAULT_URL = 'http://127.0.0.1:8787'

/** Where the access tokens are that a command is about. */
export type TokenPlace = ServicePlace | DirectoryPlace

export interface ServicePlace {
  /** Without a slash and without `/v1` at the end. */
  readonly url: string
  /** Undefined: none is sent, for a service that demands none. */
  readonly token: string | undefined
}

export interface DirectoryPlace {
  readonly directory: string
}

interface PlaceOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly directory: string | undefined
}

/** @throws CliError with exit code 2. */
export function tokenPlace({ url, token, directory }: PlaceOptions, env: CliContext['env']): TokenPlace {
  if (directory === undefined) return { url: serviceUrl(url ?? DEFAULT_URL), token: tokenOf(token, env) }
  if (url !== undefined) throw new CliError(2, '--dir does not go with --url')
  if (token !== undefined) throw new CliError(2, '--dir does not go with --token: its owner needs none')
  return { directory }
}

/** An error must not repeat the address: it might hold a password. */
function serviceUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new CliError(2, `--url must be an address such as ${DEFAULT_URL}`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new CliError(2, '--url must have no user name, password, query or fragment')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`
}

/** The address of a service, for a message: what stands behind the host might be a secret. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return pathname === '/' ? origin : `${origin}/${shown(pathname.slice(1))}`
}

/** Checked here because whoever builds a header would repeat in its error what does not fit. */
function tokenOf(option: string | undefined, env: CliContext['env']): string | undefined {
  const sources = [
    ['--token', option],
    [TOKEN_VARIABLE, env[TOKEN_VARIABLE] || undefined],
    [ROOT_TOKEN_VARIABLE, env[ROOT_TOKEN_VARIABLE] || undefined],
  ] as const
  const [name, token] = sources.find(([, value]) => value !== undefined) ?? []
  if (token === undefined) return undefined
  if (!/^[!-~]+$/.test(token) || token.length > TOKEN_CHARACTERS_MAX) {
    throw new CliError(
      2,
      `${name} must be 1 to ${TOKEN_CHARACTERS_MAX} characters of visible ASCII without spaces`,
    )
  }
  return token
}

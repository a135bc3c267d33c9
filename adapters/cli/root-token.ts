import { type Headwater, HeadwaterError } from '../../src/index.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'

export const ROOT_TOKEN_VARIABLE = 'HEADWATER_ROOT_TOKEN'

/** Where the root token of a server comes from: `option` and `environment`, set at this start; `new`, made at this start; `stored`, earlier. */
export type RootToken =
  | { readonly source: 'option' | 'environment' | 'stored' }
  | { readonly source: 'new'; readonly token: string }

export interface GivenRootToken {
  readonly source: 'option' | 'environment'
  readonly token: string
}

/** The root token that this start sets, if any. An empty environment variable is none. */
export function givenRootToken(
  option: string | undefined,
  env: CliContext['env'],
): GivenRootToken | undefined {
  if (option !== undefined) return { source: 'option', token: option }
  const token = env[ROOT_TOKEN_VARIABLE]
  return token ? { source: 'environment', token } : undefined
}

/** @throws CliError with exit code 2 for what cannot be a root token. */
export async function setRootToken(hw: Headwater, { source, token }: GivenRootToken): Promise<void> {
  try {
    await hw.setRootToken(token)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    throw new CliError(2, `${source === 'option' ? '--root-token' : ROOT_TOKEN_VARIABLE}: ${error.message}`)
  }
}

export async function createRootToken(hw: Headwater): Promise<RootToken> {
  const token = await hw.createRootToken()
  return token === undefined ? { source: 'stored' } : { source: 'new', token }
}

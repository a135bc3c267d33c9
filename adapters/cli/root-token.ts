import { rootTokenProblem } from '../../src/engine/access/token-text.ts'
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
export function checkRootToken(given: GivenRootToken): void {
  const problem = rootTokenProblem(given.token)
  if (problem !== undefined) throw refusal(given, problem)
}

/**
 * Sets the root token that was given, else makes one unless there is one. Replaces what holders rely on, or tells what is told only once: called when
 * nothing can prevent the start any more.
 *
 * @throws CliError with exit code 2 for a token that was issued on this storage.
 */
export async function establishRootToken(
  hw: Headwater,
  given: GivenRootToken | undefined,
): Promise<RootToken> {
  if (given === undefined) {
    const token = await hw.createRootToken()
    return token === undefined ? { source: 'stored' } : { source: 'new', token }
  }
  try {
    await hw.setRootToken(given.token)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    throw refusal(given, error.message)
  }
  return { source: given.source }
}

function refusal({ source }: GivenRootToken, problem: string): CliError {
  return new CliError(2, `${source === 'option' ? '--root-token' : ROOT_TOKEN_VARIABLE}: ${problem}`)
}

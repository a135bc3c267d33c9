import { rootTokenProblem } from '../../src/engine/access/tokens.ts'
import { type Engine, HeadwaterError, type RetentionPolicy } from '../../src/index.ts'
import type { CliContext } from './context.ts'
import { CliError } from './errors.ts'
import { ROOT_TOKEN_VARIABLE } from './target.ts'
import { retentionText } from './values.ts'

/** The root token of a server. It is not known if it is `stored`, created at an earlier start. */
export interface RootToken {
  readonly source: 'option' | 'environment' | 'new' | 'stored'
  readonly token: string | undefined
}

/**
 * Returns the root token that the user sets, if any. An empty environment variable counts as unset.
 *
 * @throws CliError with exit code 2 for an invalid one.
 */
export function givenRootToken(option: string | undefined, env: CliContext['env']): RootToken | undefined {
  const token = option ?? (env[ROOT_TOKEN_VARIABLE] || undefined)
  if (token === undefined) return undefined
  const given = { source: option === undefined ? 'environment' : 'option', token } as const
  const problem = rootTokenProblem(token)
  if (problem !== undefined) throw invalidToken(given, problem)
  return given
}

/**
 * Sets the given root token, or creates one if the storage has none. Replaces the token that clients use, and
 * a new token is printed only once: call it when nothing can prevent the start any more.
 *
 * @throws CliError with exit code 2 for a token that was issued on this storage.
 */
export async function establishRootToken(hw: Engine, given: RootToken | undefined): Promise<RootToken> {
  if (given?.token === undefined) {
    const token = await hw.createRootToken()
    return { source: token === undefined ? 'stored' : 'new', token }
  }
  try {
    await hw.setRootToken(given.token)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    throw invalidToken(given, error.message)
  }
  return given
}

function invalidToken({ source }: RootToken, problem: string): CliError {
  return new CliError(2, `${source === 'option' ? '`--root-token`' : ROOT_TOKEN_VARIABLE}: ${problem}`)
}

interface WelcomeDetails {
  readonly url: string
  /** The address that the server listens on. */
  readonly host: string
  readonly storage: string
  /** How long new streams keep records by default. */
  readonly retention: RetentionPolicy
  /** `open` without authentication, else where the root token comes from. */
  readonly access: 'open' | RootToken
  /** The code with which the link to the console signs in; undefined for a link without one. */
  readonly code?: string | undefined
}

const ALL_ADDRESSES = new Set(['0.0.0.0', '::'])

/**
 * Returns what `headwater serve` prints when it is ready. The lines that begin with `curl` work unchanged.
 */
export function welcome({ url, host, storage, retention, access, code }: WelcomeDetails): string[] {
  const variable = ` -H "authorization: Bearer $${ROOT_TOKEN_VARIABLE}"`
  const isNew = access !== 'open' && access.source === 'new'
  const header = isNew ? ` -H 'authorization: Bearer ${access.token}'` : variable
  const authorization = access === 'open' ? '' : header
  const json = `-H 'content-type: application/json'`
  const basin = `-H 'svc-basin: my-basin'`
  // Responses end without a line break, and the prompt would follow them.
  const curl = `curl -w '\\n'`
  const records = `${url}/v1/streams/greetings/records`
  return [
    `headwater listens on ${url}${ALL_ADDRESSES.has(host) ? `, and on every other address of this machine (${host})` : ''}`,
    `Storage: ${storage}`,
    `Retention: new streams keep records ${retentionText(retention)} by default`,
    ...accessLines(access),
    code === undefined
      ? `Console: ${url}`
      : `Console, signed in once, within ten minutes: ${url}/#code=${code}`,
    '',
    'Create a basin, append a record, read it:',
    `${curl} -X PUT ${url}/v1/basins/my-basin${authorization} ${json} -d '{"config":{"create_stream_on_append":true}}'`,
    `${curl} ${records}${authorization} ${basin} ${json} -d '{"records":[{"body":"hello"}]}'`,
    `${curl} '${records}?seq_num=0'${authorization} ${basin}`,
    'Press Ctrl+C to stop.',
  ]
}

function accessLines(access: WelcomeDetails['access']): string[] {
  if (access === 'open') return ['Access: no authentication; anyone who can connect has full access']
  const hint = `To run the commands below, export it as ${ROOT_TOKEN_VARIABLE}.`
  switch (access.source) {
    case 'environment':
      return [`Root token: from ${ROOT_TOKEN_VARIABLE}`]
    case 'option':
      return [`Root token: from --root-token. ${hint}`]
    case 'new':
      return [
        `Root token: ${access.token}`,
        `Store it now: it has every permission and is not shown again. Commands read ${ROOT_TOKEN_VARIABLE}.`,
      ]
    case 'stored':
      return [
        `Root token: created at an earlier start. ${hint}`,
        `If you lost it, set ${ROOT_TOKEN_VARIABLE} to a new one and restart.`,
      ]
  }
}

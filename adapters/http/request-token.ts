import { requestTokenProblem } from '../../src/model/names.ts'
import { invalidHeader } from './header-text.ts'
import type { RequestContext } from './request-context.ts'

/** The request token, if there is one: any text, the empty one too. Throws 400 `bad_header` when it is too long. */
export function requestToken(context: RequestContext): string | undefined {
  const token = context.vendorHeader('request-token')
  const problem = token === undefined ? undefined : requestTokenProblem(token)
  if (problem !== undefined) throw invalidHeader(context.vendorHeaderName('request-token'), problem)
  return token
}

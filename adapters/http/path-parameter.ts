import { accessTokenIdProblem } from '../../src/model/access.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import type { RouteMatch } from './router.ts'

/** What is wrong with a name, for each parameter that a path may have. */
const PROBLEM_OF: Readonly<Record<string, (name: string) => string | undefined>> = {
  basin: basinNameProblem,
  stream: streamNameProblem,
  id: accessTokenIdProblem,
}

/** A name in the path: one segment, percent-encoded UTF-8. Throws 400 `bad_path` (wire-behaviour.md 1.1). */
export function pathParameter(
  { parameters }: RouteMatch,
  name: string,
  problemOf = PROBLEM_OF[name],
): string {
  const value = decoded(parameters.get(name)!)
  const problem = value === undefined ? 'not percent-encoded UTF-8' : problemOf?.(value)
  if (value === undefined || problem !== undefined) {
    throw new HeadwaterError('bad_path', `Invalid \`${name}\` in the path: ${problem}`, { field: name })
  }
  return value
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

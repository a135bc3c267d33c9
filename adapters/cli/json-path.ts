import { CliError, quoteArg } from './errors.ts'

/** The names of members and the indexes of items that lead to a value. */
export type JsonPath = readonly (string | number)[]

const STEP = /\.([^.[\]"\s]+)|\.?\[(-?\d{1,9})\]|\.?\[("(?:[^"\\]|\\.)*")\]|\.("(?:[^"\\]|\\.)*")/y

/**
 * Parses a path such as `.user.name`, `.items[-1].id` or `."any name"`; `.` is the whole value.
 *
 * @param name The argument, for errors: `--select`.
 * @throws CliError with exit code 2.
 */
export function parseJsonPath(text: string, name: string): JsonPath {
  const steps: (string | number)[] = []
  let at = 0
  if (text === '.') return steps
  while (at < text.length) {
    STEP.lastIndex = at
    const [step, member, index, bracketed, quoted = bracketed] = STEP.exec(text) ?? []
    if (step === undefined || (at === 0 && !text.startsWith('.'))) break
    const unquoted = member ?? (quoted === undefined ? undefined : textOf(quoted))
    if (index === undefined && unquoted === undefined) break
    steps.push(unquoted ?? Number(index))
    at += step.length
  }
  if (at > 0 && at === text.length) return steps
  throw new CliError(
    2,
    `invalid ${name} ${quoteArg(text)}; it must be a path such as .user.name or .items[0]`,
  )
}

/** Returns the text of a JSON string; undefined if it is malformed. */
function textOf(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}

/** Returns the text of the value at the path, as JSON unless it is a string; undefined if there is none. */
export function selectedText(json: string, path: JsonPath): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return undefined
  }
  for (const step of path) {
    if (typeof step === 'number') value = Array.isArray(value) ? value.at(step) : undefined
    else {
      const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, step)
      value = isMember ? (value as Record<string, unknown>)[step] : undefined
    }
  }
  return typeof value === 'string' ? value : JSON.stringify(value)
}

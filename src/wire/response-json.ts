/**
 * A response that the protocol does not allow. Decoders of responses throw it; a client turns it into an
 * error that says which request failed.
 */
export class MalformedResponse extends Error {
  /** @param problem Completes the sentence "unexpected response: …". */
  constructor(problem: string) {
    super(problem)
    this.name = 'MalformedResponse'
  }
}

/** An object of a JSON response. `JSON.parse` suffices: a number that it rounds is not a safe integer. */
export type ResponseObject = Readonly<Record<string, unknown>>

/** Parses the text of a response. Throws {@link MalformedResponse} unless it is JSON. */
export function parseResponse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new MalformedResponse('its body is not JSON')
  }
}

export function recordOf(value: unknown, name: string): ResponseObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as ResponseObject
  throw wrongType(name, 'an object')
}

export function integerOfJson(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw wrongType(name, 'an integer from 0 to 2^53 - 1')
}

/** The error for a member of another type. */
export function wrongType(name: string, expected: string): MalformedResponse {
  return new MalformedResponse(`\`${name}\` is not ${expected}`)
}

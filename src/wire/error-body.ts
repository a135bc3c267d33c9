import { HeadwaterError } from '../model/errors.ts'
import { tailJson } from './json-position.ts'

/** An error as the wire carries it: in a response, in a terminal frame or in an SSE `error` event. */
export interface ErrorBody {
  readonly status: number
  /** JSON without a line break. */
  readonly text: string
}

/**
 * The status and JSON text of an error (wire-behaviour.md 2.1). 412 and 416 have shapes of their own, without a code. What is not a
 * {@link HeadwaterError} is a defect: it becomes 500 `other`, and nothing of its message is told.
 */
export function errorBody(error: unknown): ErrorBody {
  if (!HeadwaterError.is(error)) return { status: 500, text: codeAndMessage('other', 'internal error') }
  return { status: error.status, text: bareShape(error) ?? codeAndMessage(error.code, error.message) }
}

function bareShape({ code, fencingToken, seqNum, tail }: HeadwaterError): string | undefined {
  if (code === 'fencing_token_mismatch' && fencingToken !== undefined) {
    return JSON.stringify({ fencing_token_mismatch: fencingToken })
  }
  if (code === 'seq_num_mismatch' && seqNum !== undefined) return JSON.stringify({ seq_num_mismatch: seqNum })
  if (code === 'range_not_satisfiable' && tail !== undefined) return tailJson(tail)
  return undefined
}

function codeAndMessage(code: string, message: string): string {
  return JSON.stringify({ code, message })
}

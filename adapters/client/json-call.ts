import { utf8 } from '../../src/model/bytes.ts'
import type { Call } from './call.ts'

interface JsonCallOptions extends Pick<Call, 'basin' | 'vendor' | 'signal'> {
  readonly text?: string | undefined
  /** True by default, which is right for calls that change nothing. */
  readonly isRepeatable?: boolean | undefined
}

/** A call whose body and response are JSON. */
export function jsonCall(
  method: Call['method'],
  path: string,
  { text, isRepeatable = true, ...others }: JsonCallOptions,
): Call {
  const body = text === undefined ? {} : { body: utf8(text), contentType: 'application/json' }
  return { method, path, isRepeatable, ...others, ...body }
}

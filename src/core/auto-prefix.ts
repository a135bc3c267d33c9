import { utf8Length } from '../model/bytes.ts'
import { invalid } from '../model/errors.ts'
import type { ListQuery } from '../model/info.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'
import type { NameRole } from '../model/names.ts'

/** What stands before every stream name of a token's holder; `''` is nothing (wire-behaviour.md 9.8). */
interface Prefixed {
  readonly streamPrefix: string
}

/** The whole name of the stream that the holder means. Throws 422 `invalid` when it is too long together with its prefix. */
export function wholeName({ streamPrefix }: Prefixed, name: string): string {
  return checkedLength(streamPrefix + name, streamPrefix, 'name', 'stream')
}

/** The name that the holder has for a stream. */
export function shownName({ streamPrefix }: Prefixed, wholeName: string): string {
  return wholeName.slice(streamPrefix.length)
}

/** The list of streams that the holder means: everywhere it begins behind the prefix. Throws 422 `invalid` as for names. */
export function wholeQuery({ streamPrefix }: Prefixed, query: ListQuery): ListQuery {
  if (streamPrefix === '') return query
  const { prefix = '', startAfter = '' } = query
  return {
    ...query,
    prefix: checkedLength(streamPrefix + prefix, streamPrefix, 'prefix', 'prefix'),
    startAfter:
      startAfter === ''
        ? ''
        : checkedLength(streamPrefix + startAfter, streamPrefix, 'start-after', 'start_after'),
  }
}

function checkedLength(text: string, streamPrefix: string, role: NameRole, field: string): string {
  if (streamPrefix === '' || utf8Length(text) <= STREAM_NAME_BYTES_MAX) return text
  throw invalid(
    `stream ${role} must not exceed ${STREAM_NAME_BYTES_MAX} bytes in length together with the prefix of the access token`,
    field,
  )
}

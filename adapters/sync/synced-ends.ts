import type { Stream } from '../../src/api/stream.ts'
import { invalid } from '../../src/model/errors.ts'
import { hasMethod } from '../../src/model/validation.ts'

const assertStream = hasMethod('openCursor', 'a stream')

/** Throws `invalid` unless both are streams, and not the same one. */
export function assertEnds(remote: Stream, local: Stream): void {
  assertStream(remote, 'remote')
  assertStream(local, 'local')
  if (remote.equals(local)) throw invalid('`remote` and `local` are the same stream', 'local')
}

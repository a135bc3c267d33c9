import type { StreamTail } from '../../src/model/position.ts'
import { positionOf } from '../../src/wire/decode-records.ts'
import { recordOf } from '../../src/wire/response-json.ts'
import type { ClientCore } from './core.ts'
import { jsonCall } from './json-call.ts'
import type { RemoteTarget } from './stream-target.ts'

/** Resolves to the tail of a stream. */
export function tailOf(
  { sender }: ClientCore,
  { basin, path, creationHeaders }: RemoteTarget,
  signal?: AbortSignal,
): Promise<StreamTail> {
  const call = jsonCall('GET', `${path}/records/tail`, { basin, vendor: creationHeaders, signal })
  return sender.json(call, (value) => positionOf(recordOf(value, 'body').tail))
}

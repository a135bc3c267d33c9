import type { StreamTail } from '../../src/model/position.ts'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { ReadBatch } from '../../src/storage/record-batch.ts'
import { objectOf } from '../../src/wire/json.ts'
import { positionOf } from '../../src/wire/json-records.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import { jsonCall } from './call.ts'
import type { ClientCore } from './core.ts'
import { decoded, emptyAt } from './errors.ts'
import { ReceivedRange } from './received-range.ts'
import type { RemoteTarget } from './stream-target.ts'

/** Reads one batch. Where the server has nothing to read, it is empty. */
export async function readBatch(
  { sender }: ClientCore,
  { path, basin, recordHeaders }: RemoteTarget,
  query: ReadQuery,
  signal: AbortSignal | undefined,
): Promise<ReadBatch> {
  assertReadQuery(query)
  const parts = readQueryParts(query, 'unary')
  try {
    const { body } = await sender.send({
      method: 'GET',
      path: `${path}/records${queryText(parts)}`,
      basin,
      vendor: recordHeaders,
      accept: 'application/protobuf',
      isRepeatable: true,
      waitMs: Number(parts.wait ?? 0) * 1000,
      signal,
    })
    return decoded(false, () => {
      const received = decodeReadBatch(body)
      new ReceivedRange(query).take(received)
      return ReadBatch.received(received)
    })
  } catch (error) {
    const tail = emptyAt(query, error)
    if (tail === undefined) throw error
    return ReadBatch.received({ records: [], tail })
  }
}

/** Resolves to the tail of a stream. */
export function tailOf(
  { sender }: ClientCore,
  { basin, path, creationHeaders }: RemoteTarget,
  signal?: AbortSignal,
): Promise<StreamTail> {
  const call = jsonCall('GET', `${path}/records/tail`, { basin, vendor: creationHeaders, signal })
  return sender.json(call, (value) => positionOf(objectOf(value, 'body').tail))
}

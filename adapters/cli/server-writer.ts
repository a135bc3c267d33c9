import type { AppendConditions } from '../../src/index.ts'
import { bodiesOf } from '../../src/model/lines.ts'
import { appendRecords } from './append-records.ts'
import type { BatchWriter, WriterEvents } from './batch-writer.ts'
import type { Client } from './client.ts'
import { isLines } from './record-reader.ts'
import type { StreamName } from './stream-name.ts'

/** Opens a writer to a stream of a server. */
export function serverWriter(
  client: Client,
  name: StreamName,
  conditions: AppendConditions,
  { onAck }: WriterEvents,
): BatchWriter {
  return {
    async write(batch) {
      const records = isLines(batch.records) ? bodiesOf(batch.records) : batch.records
      onAck(await appendRecords(client, name, records, conditions), batch)
    },
    async close() {},
  }
}

import type { AppendConditions } from '../../src/index.ts'
import { TextLines } from '../../src/storage/text-lines.ts'
import { appendRecords } from './append-records.ts'
import type { BatchWriter, WriterEvents } from './batch-writer.ts'
import type { Client } from './client.ts'
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
      const { records } = batch
      const inputs = records instanceof TextLines ? records.bodies() : records
      onAck(await appendRecords(client, name, inputs, conditions), batch)
    },
    async close() {},
  }
}

import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import type { Performer } from '../support/access-table/perform.ts'
import { clientOf } from './support.ts'

/** Calls a service through the published client. Lists are read page by page. */
/** The configuration of a basin that was created in process. */
const FOREVER = { defaultStreamConfig: { retentionPolicy: { infinite: {} } } } as const

export function byClient(url: string, token: string, now: () => number): Performer {
  const s2 = clientOf(url, { retry: { maxAttempts: 1 } }, token)
  const streamsOf = (basin: string) => s2.basin(basin).streams
  const streamOf = (basin: string, stream: string) => s2.basin(basin).stream(stream)
  const append = (basin: string, stream: string, record: AppendRecord) =>
    streamOf(basin, stream).append(AppendInput.create([record]))
  const lastHour = () => ({ start: now() - 3_600_000, end: now() })
  return {
    'list-basins': () => namesOf(s2.basins.listAll({ limit: 1 }), ({ name }) => name),
    'create-basin': (basin) => s2.basins.create({ basin }),
    'delete-basin': (basin) => s2.basins.delete({ basin }),
    'reconfigure-basin': (basin) => s2.basins.reconfigure({ basin, createStreamOnRead: true }),
    'get-basin-config': (basin) => s2.basins.getConfig({ basin }),
    'issue-access-token': (id) => s2.accessTokens.issue({ id, scope: { ops: ['issue-access-token'] } }),
    'revoke-access-token': (id) => s2.accessTokens.revoke({ id }),
    'list-access-tokens': () => namesOf(s2.accessTokens.listAll({ limit: 1 }), ({ id }) => id),
    'list-streams': (basin) => namesOf(streamsOf(basin).listAll({ limit: 1 }), ({ name }) => name),
    'create-stream': (basin, stream) => streamsOf(basin).create({ stream }),
    'delete-stream': (basin, stream) => streamsOf(basin).delete({ stream }),
    'get-stream-config': (basin, stream) => streamsOf(basin).getConfig({ stream }),
    'reconfigure-stream': (basin, stream) =>
      streamsOf(basin).reconfigure({ stream, storageClass: 'standard' }),
    'check-tail': (basin, stream) => streamOf(basin, stream).checkTail(),
    append: (basin, stream) => append(basin, stream, AppendRecord.string({ body: 'x' })),
    read: (basin, stream) => streamOf(basin, stream).read({ start: { from: { seqNum: 0 } } }),
    trim: (basin, stream) => append(basin, stream, AppendRecord.trim(0)),
    fence: (basin, stream) => append(basin, stream, AppendRecord.fence('mine')),
    'account-metrics': () => s2.metrics.account({ set: 'account-ops', ...lastHour() }),
    'basin-metrics': (basin) => s2.metrics.basin({ basin, set: 'basin-ops', ...lastHour() }),
    'stream-metrics': (basin, stream) => s2.metrics.stream({ basin, stream, set: 'storage', ...lastHour() }),
    'list-locations': () => s2.locations.list(),
    'get-default-location': () => s2.locations.getDefault(),
    'set-default-location': () => s2.locations.setDefault({ location: 'aws:us-east-1' }),
    'ensure-basin': (basin, config) =>
      s2.basins.ensure({ basin, config: config === 'same' ? FOREVER : { createStreamOnAppend: true } }),
    'ensure-stream': (basin, stream, config) =>
      streamsOf(basin).ensure({ stream, config: config === 'same' ? {} : { storageClass: 'standard' } }),
  }
}

async function namesOf<Info>(pages: AsyncIterable<Info>, nameOf: (info: Info) => string): Promise<string[]> {
  const names: string[] = []
  for await (const info of pages) names.push(nameOf(info))
  return names
}

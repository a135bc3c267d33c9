import type { Engine, Operation } from '../../../src/index.ts'
import type { MetricsQuery } from '../../../src/model/metrics.ts'

/**
 * A caller with a token: one method for each operation. A rejected call rejects with an error that has a
 * `status`.
 */
export interface Performer extends Record<Operation, (...names: string[]) => Promise<unknown>> {
  /** The names of all basins. */
  'list-basins'(): Promise<readonly string[]>
  'create-basin'(basin: string): Promise<unknown>
  'delete-basin'(basin: string): Promise<unknown>
  /** Changes something. */
  'reconfigure-basin'(basin: string): Promise<unknown>
  'get-basin-config'(basin: string): Promise<unknown>
  /** Issues one that permits to issue tokens, on no resource, that expires with its issuer. */
  'issue-access-token'(id: string): Promise<unknown>
  'revoke-access-token'(id: string): Promise<unknown>
  /** The ids of all. */
  'list-access-tokens'(): Promise<readonly string[]>
  /** The names of all streams. */
  'list-streams'(basin: string): Promise<readonly string[]>
  'create-stream'(basin: string, stream: string): Promise<unknown>
  'delete-stream'(basin: string, stream: string): Promise<unknown>
  'get-stream-config'(basin: string, stream: string): Promise<unknown>
  /** Changes something. */
  'reconfigure-stream'(basin: string, stream: string): Promise<unknown>
  'check-tail'(basin: string, stream: string): Promise<unknown>
  /** One record. */
  append(basin: string, stream: string): Promise<unknown>
  /** The first record, without waiting. */
  read(basin: string, stream: string): Promise<unknown>
  /** Appends a command that trims nothing. */
  trim(basin: string, stream: string): Promise<unknown>
  /** Appends a command that sets a fencing token. */
  fence(basin: string, stream: string): Promise<unknown>
  'account-metrics'(): Promise<unknown>
  'basin-metrics'(basin: string): Promise<unknown>
  'stream-metrics'(basin: string, stream: string): Promise<unknown>
  'list-locations'(): Promise<unknown>
  'get-default-location'(): Promise<unknown>
  'set-default-location'(): Promise<unknown>
  /** Makes sure of a basin with its first configuration, or with another one. */
  'ensure-basin'(basin: string, config: 'same' | 'other'): Promise<unknown>
  'ensure-stream'(basin: string, stream: string, config: 'same' | 'other'): Promise<unknown>
}

/** Calls an engine in the same process. */
export function inProcess(hw: Engine): Performer {
  const streamOf = (basin: string, stream: string) => hw.basin(basin).stream(stream)
  const lastHour = <Set extends MetricsQuery['set']>(set: Set): MetricsQuery<Set> => {
    const end = hw.now()
    return { set, start: end - 3_600_000, end }
  }
  return {
    'list-basins': async () => (await hw.listBasins()).items.map(({ name }) => name),
    'create-basin': (basin) => hw.createBasin(basin),
    'delete-basin': (basin) => hw.basin(basin).delete(),
    'reconfigure-basin': (basin) => hw.basin(basin).reconfigure({ createStreamOnRead: true }),
    'get-basin-config': (basin) => hw.basin(basin).config(),
    'issue-access-token': (id) => hw.issueAccessToken({ id, scope: { ops: ['issue-access-token'] } }),
    'revoke-access-token': (id) => hw.revokeAccessToken(id),
    'list-access-tokens': async () => (await hw.listAccessTokens()).items.map(({ id }) => id),
    'list-streams': async (basin) => (await hw.basin(basin).listStreams()).items.map(({ name }) => name),
    'create-stream': (basin, stream) => hw.basin(basin).createStream(stream),
    'delete-stream': (basin, stream) => hw.basin(basin).stream(stream).delete(),
    'get-stream-config': (basin, stream) => hw.basin(basin).stream(stream).config(),
    'reconfigure-stream': (basin, stream) =>
      hw.basin(basin).stream(stream).reconfigure({ storageClass: 'standard' }),
    'check-tail': (basin, stream) => streamOf(basin, stream).checkTail(),
    append: (basin, stream) => streamOf(basin, stream).append('x'),
    read: (basin, stream) => streamOf(basin, stream).readBatch({ seqNum: 0 }),
    trim: (basin, stream) => streamOf(basin, stream).trim(0),
    fence: (basin, stream) => streamOf(basin, stream).fence('mine'),
    'account-metrics': () => hw.metrics(lastHour('account-ops')),
    'basin-metrics': (basin) => hw.basin(basin).metrics(lastHour('basin-ops')),
    'stream-metrics': (basin, stream) => streamOf(basin, stream).metrics(lastHour('storage')),
    'list-locations': () => hw.listLocations(),
    'get-default-location': () => hw.defaultLocation(),
    'set-default-location': () => hw.setDefaultLocation('aws:us-east-1'),
    'ensure-basin': (basin, config) =>
      hw.ensureBasin(basin, config === 'same' ? {} : { createStreamOnAppend: true }),
    'ensure-stream': (basin, stream, config) =>
      hw.basin(basin).ensureStream(stream, config === 'same' ? {} : { storageClass: 'standard' }),
  }
}

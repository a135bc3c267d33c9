import type { Measurement } from '../harness/measurement.ts'
import { batchSizeRows } from './batch-size.ts'
import { cliRows } from './cli.ts'
import { clientRows } from './clients.ts'
import { codecRows } from './codec.ts'
import { durableStreamsRows } from './durable-streams.ts'
import { encryptionRows } from './encryption.ts'
import { filesystemRows } from './filesystem.ts'
import { httpRows } from './http.ts'
import { inProcessRows } from './in-process.ts'
import { indexedDbRows } from './indexeddb.ts'
import { postgresRows } from './postgres.ts'
import { scaleRows } from './scale.ts'
import { sessionRows } from './sessions.ts'
import { syncRows } from './sync.ts'

/** The tables of the page. */
export const GROUPS: Readonly<Record<string, Readonly<Record<string, Measurement>>>> = {
  http: httpRows,
  sessions: sessionRows,
  'durable-streams': durableStreamsRows,
  clients: clientRows,
  sync: syncRows,
  'in-process': inProcessRows,
  filesystem: filesystemRows,
  postgres: postgresRows,
  scale: scaleRows,
  cli: cliRows,
  'batch-size': batchSizeRows,
  indexeddb: indexedDbRows,
  encryption: encryptionRows,
  codec: codecRows,
}

export const MEASUREMENTS: Readonly<Record<string, Measurement>> = Object.assign({}, ...Object.values(GROUPS))

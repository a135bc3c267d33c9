import type { Measurement } from '../harness/measurement.ts'
import { clientRows } from './clients.ts'
import { filesystemRows } from './filesystem.ts'
import { httpRows } from './http.ts'
import { inProcessRows } from './in-process.ts'
import { indexedDbRows } from './indexeddb.ts'
import { postgresRows } from './postgres.ts'
import { s3Rows } from './s3.ts'
import { scaleRows } from './scale.ts'
import { sessionRows } from './sessions.ts'
import { syncRows } from './sync.ts'

/** The tables of the page. */
export const GROUPS: Readonly<Record<string, Readonly<Record<string, Measurement>>>> = {
  http: httpRows,
  sessions: sessionRows,
  clients: clientRows,
  sync: syncRows,
  'in-process': inProcessRows,
  filesystem: filesystemRows,
  postgres: postgresRows,
  bucket: s3Rows,
  scale: scaleRows,
  indexeddb: indexedDbRows,
}

export const MEASUREMENTS: Readonly<Record<string, Measurement>> = Object.assign({}, ...Object.values(GROUPS))

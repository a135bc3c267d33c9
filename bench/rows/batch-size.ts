import type { Contestant, Measurement } from '../harness/measurement.ts'
import { httpAppends } from './http.ts'

/** The chart of throughput by batch size. */
export const BATCH_SIZES = [1, 10, 100, 900] as const
/** The most records of a turn in memory. */
const MOST_RECORDS = 200_000

interface Way {
  readonly title: string
  readonly contestant: (records: number) => Contestant
}

export const WAYS: Readonly<Record<string, Way>> = {
  memory: {
    title: 'in process, memory, one writer',
    contestant: (records) => ({
      program: 'in-process',
      side: 'headwater',
      params: { records, bytes: 1_024 },
    }),
  },
  disk: {
    title: 'in process, filesystem, one writer',
    contestant: (records) => ({ program: 'filesystem', side: 'headwater', params: { records } }),
  },
  session: {
    title: 'binary session, published client, memory',
    contestant: (records) => ({
      program: 'headwater-server',
      side: 'server',
      load: { side: 'append session', params: { records } },
    }),
  },
  http: {
    title: 'HTTP with JSON, 32 connections, memory',
    contestant: (records) => ({ program: 'headwater-server', side: 'server', load: httpAppends(records) }),
  },
}

export const batchSizeRows: Readonly<Record<string, Measurement>> = Object.fromEntries(
  Object.entries(WAYS).flatMap(([way, { title, contestant }]) =>
    BATCH_SIZES.map((records) => [
      batchSizeRow(way, records),
      measurementOf(title, records, contestant(records)),
    ]),
  ),
)

export function batchSizeRow(way: string, records: number): string {
  return `batch-size-${way}-${records}`
}

function measurementOf(title: string, records: number, ours: Contestant): Measurement {
  return {
    work: `${title}: batches of ${records} × 1 KiB`,
    each: 'a batch',
    most: Math.ceil(MOST_RECORDS / records),
    ours,
    rivals: [{ against: '' }],
    needsPeers: ours.program === 'filesystem',
  }
}

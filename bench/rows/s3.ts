import type { Measurement, Rival } from '../harness/measurement.ts'
import { textOf } from '../harness/records.ts'

const program = 's3'

const unavailable = () =>
  process.env.OPEN_SERVER === undefined ? '`OPEN_SERVER` does not name its binary' : undefined

/** Requires `versitygw`. Each side has a gateway of its own on the disk. */
export const s3Rows: Readonly<Record<string, Measurement>> = {
  's3-append-1': appends(1),
  's3-append-64': appends(64),
  's3-append-1000': appends(1_000),
  's3-catch-up': {
    work: 'bucket: reading {size} × 1 KiB over HTTP as JSON, 1,000 a request, after a restart',
    each: 'a record',
    size: 20_000,
    exactly: 'size',
    isFresh: true,
    ours: { program, side: 'headwater catch-up' },
    rivals: [
      {
        against: 'the open server on the same gateway',
        contestant: { program, side: 'open server catch-up' },
        unavailable,
      },
      {
        against: 'bare `GET`s of as many bytes, 1 MiB each, one after the other',
        contestant: { program, side: 'bare catch-up' },
      },
    ],
  },
}

function appends(writers: number): Measurement {
  const load = (basinHeader: string) => ({
    side: 'requests',
    params: {
      connections: writers,
      request: {
        method: 'POST',
        path: '/v1/streams/streams%2F0/records',
        headers: { [basinHeader]: 'my-basin', 'content-type': 'application/json' },
        body: JSON.stringify({ records: [{ body: textOf() }] }),
      },
    },
  })
  const count = writers === 1 ? '1 writer' : `${writers.toLocaleString('en')} writers`
  const rivals: Rival[] = [
    {
      against: 'the open server on the same gateway',
      contestant: { program, side: 'open server', load: load('s2-basin') },
      unavailable,
    },
    {
      against: 'bare `node:http` that parses the JSON and stores groups by conditional `PUT`s',
      contestant: { program, side: 'bare', load: load('svc-basin') },
    },
  ]
  return {
    work: `bucket: append of 1 KiB over HTTP as JSON, ${count}`,
    each: 'an append',
    ours: { program, side: 'headwater', load: load('svc-basin') },
    rivals,
  }
}

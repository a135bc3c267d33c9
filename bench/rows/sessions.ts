import type { Measurement } from '../harness/measurement.ts'

const GIB = 1_073_741_824
const HEADERS = { 'content-type': 's2s/proto', 's2-basin': 'my-basin' }

export const sessionRows: Readonly<Record<string, Measurement>> = {
  'session-append-10': append(10),
  'session-append-900': append(900),
  'session-read-1k': read(1_024, '1 KiB', false),
  'session-read-64k-disk': read(65_536, '64 KiB', true),
}

function append(records: number): Measurement {
  const load = { side: 'append session', params: { records } }
  return {
    work: `binary append session: batches of ${records} × 1 KiB, published client, memory`,
    each: 'a batch',
    most: Math.ceil(200_000 / records),
    ours: { program: 'headwater-server', side: 'server', load },
    rivals: [
      {
        against: 'bare `node:http2` that acknowledges each frame',
        contestant: { program: 'bare-sessions', side: 'acks', params: { records }, load },
        atLeast: 0.6,
      },
    ],
  }
}

function read(bytes: number, named: string, onDisk: boolean): Measurement {
  const load = { side: 'downloads', params: { bytes, headers: HEADERS } }
  return {
    work: `binary read session: catch-up of {size} × ${named}, ${onDisk ? 'filesystem' : 'memory'}`,
    each: 'a MiB',
    size: GIB / bytes,
    exactly: 1,
    ours: { program: 'headwater-server', side: 'filled server', params: { bytes, onDisk }, load },
    rivals: [
      {
        against: 'bare `node:http2` that sends the same bytes from memory',
        contestant: { program: 'bare-sessions', side: 'records', params: { bytes }, load },
        atLeast: onDisk ? 0.4 : 0.8,
      },
      ...(onDisk
        ? [
            {
              against: 'bare `node:http2` that reads and verifies the same bytes',
              contestant: { program: 'bare-sessions', side: 'records on disk', params: { bytes }, load },
              atLeast: 0.5,
            },
            {
              against: 'the same into three buffers that take turns',
              contestant: {
                program: 'bare-sessions',
                side: 'records on disk',
                params: { bytes, reuses: true },
                load,
              },
            },
          ]
        : []),
    ],
  }
}

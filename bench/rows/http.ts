import { existsSync } from 'node:fs'
import type { Contestant, Measurement } from '../harness/measurement.ts'
import { textOf } from '../harness/records.ts'
import { MARK } from '../load/followers.ts'
import type { Request } from '../load/http.ts'

const CONNECTIONS = 32
const BODY = textOf()
const JSON_TYPE = { 'content-type': 'application/json' }
const RECORDS_PATH = '/v1/streams/streams%2F0/records'
const BASIN = { 'svc-basin': 'my-basin' }

const appendRequest = {
  method: 'POST',
  path: RECORDS_PATH,
  headers: { ...BASIN, ...JSON_TYPE },
  body: JSON.stringify({ records: [{ body: BODY }] }),
}
const readRequest = { method: 'GET', path: `${RECORDS_PATH}?seq_num=0&count=100`, headers: BASIN }
const appends = requestsOf(appendRequest)
const reads = requestsOf(readRequest)

const headwater = { program: 'headwater-server', side: 'server' }
const onDisk = { onDisk: true }

/** Its streams hold arrays of JSON; each element is a message. */
const durableStreams: Contestant = {
  program: 'durable-streams-server',
  side: 'server',
  load: requestsOf({
    method: 'POST',
    path: '/my-stream',
    headers: JSON_TYPE,
    body: JSON.stringify([{ body: BODY }]),
  }),
}

const redis: Contestant = {
  program: 'redis-server',
  side: 'server',
  load: {
    side: 'redis',
    params: { connections: CONNECTIONS, command: ['XADD', 'my-stream', '*', 'body', BODY] },
  },
}

const follow = {
  method: 'GET',
  path: `${RECORDS_PATH}?tail_offset=0`,
  headers: { ...BASIN, accept: 'text/event-stream' },
}
const markedAppend = {
  ...appendRequest,
  body: JSON.stringify({ records: [{ body: `${MARK}${BODY.slice(1)}` }] }),
}
const fanout = { side: 'fanout', params: { followers: 1_000, follow, append: markedAppend } }
const burstRead = { ...readRequest, path: `${RECORDS_PATH}?seq_num=0&count=10` }
const download = { ...follow, path: '/v1/streams/streams%2F1/records?seq_num=0' }
export const httpRows: Readonly<Record<string, Measurement>> = {
  'http-append': {
    needsPeers: true,
    work: `HTTP: append of 1 KiB as JSON, ${CONNECTIONS} connections, memory`,
    each: 'an append',
    ours: { ...headwater, load: appends },
    rivals: [
      {
        against: 'bare `node:http` that parses the JSON and sends the same bytes',
        contestant: { program: 'bare-server', side: 'append', load: appends },
        atLeast: 0.5,
      },
      { against: '`@durable-streams/server`, memory', contestant: durableStreams, atLeast: 1.2 },
    ],
  },
  'http-append-disk': {
    needsPeers: true,
    work: `HTTP: append of 1 KiB as JSON, ${CONNECTIONS} connections, filesystem`,
    each: 'an append',
    ours: { ...headwater, params: onDisk, load: appends },
    rivals: [
      {
        against: '`@durable-streams/server`, files',
        contestant: { ...durableStreams, params: onDisk },
        atLeast: 1.5,
      },
      {
        against: 'bare `node:http` that parses the JSON, writes groups to a file and syncs them',
        contestant: { program: 'bare-server', side: 'append synced', load: appends },
        atLeast: 0.5,
      },
      {
        against: 'Redis Streams, `appendfsync always`',
        contestant: redis,
        unavailable: () =>
          existsSync('/usr/bin/redis-server') ? undefined : '`redis-server` is not installed in /usr/bin',
      },
    ],
  },
  'http-read': {
    work: `HTTP: read of 100 records of 1 KiB as JSON, ${CONNECTIONS} connections, memory`,
    each: 'a read',
    ours: { ...headwater, load: reads },
    rivals: [
      {
        against: 'bare `node:http` that serializes the same objects',
        contestant: { program: 'bare-server', side: 'read', load: reads },
        atLeast: 0.5,
      },
    ],
  },
  'sse-fanout': {
    work: 'SSE: 1,000 followers, 40 records of 1 KiB a second, CPU time of the server',
    each: 'a delivery',
    ours: { ...headwater, load: fanout },
    rivals: [
      {
        against: 'bare `node:http` that writes the same strings',
        contestant: { program: 'bare-server', side: 'events', load: fanout },
        by: 'cpu',
        atLeast: 0.8,
      },
    ],
  },
  // What others wait for while many clients begin to read and stop at once.
  'burst-max': {
    work: 'HTTP: the slowest read of 10 records, or append, while 500 connections request {size} × 64 KiB as SSE and never read, memory',
    each: 'a request',
    size: 800,
    exactly: 1,
    isFresh: true,
    ours: {
      program: 'headwater-server',
      side: 'filled server',
      params: { bytes: 65_536 },
      load: { side: 'burst', params: { connections: 500, download, others: [burstRead, appendRequest] } },
    },
    rivals: [{ against: '', atMostMicroseconds: 250_000 }],
  },
}

function requestsOf(request: Request) {
  return { side: 'requests', params: { connections: CONNECTIONS, request } }
}

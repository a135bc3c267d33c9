import type { Operation } from '../../../src/index.ts'
import type { Endpoint, Method, Route } from '../router.ts'
import { issueAccessToken, listAccessTokens, revokeAccessToken } from './access-tokens.ts'
import { append } from './append.ts'
import {
  createBasin,
  deleteBasin,
  ensureBasin,
  getBasinConfig,
  listBasins,
  reconfigureBasin,
} from './basins.ts'
import { checkTail } from './check-tail.ts'
import { health } from './health.ts'
import { getDefaultLocation, listLocations, setDefaultLocation } from './locations.ts'
import { prometheus } from './prometheus.ts'
import { read } from './read.ts'
import {
  createStream,
  deleteStream,
  ensureStream,
  getStreamConfig,
  listStreams,
  reconfigureStream,
} from './streams.ts'
import { accountMetrics, basinMetrics, streamMetrics } from './usage.ts'

/** An endpoint for those who may do at least one of the operations. */
function permitted(endpoint: Endpoint, ...operations: readonly Operation[]): Method {
  return { endpoint, operations }
}

/** An endpoint for everybody. */
function open(endpoint: Endpoint): Method {
  return { endpoint, operations: 'public' }
}

/** Every endpoint (wire-behaviour.md 1.2, 1.3 and 9.5). */
export const ROUTES: readonly Route[] = [
  { pattern: '/health', methods: { GET: open(health), HEAD: open(health) } },
  { pattern: '/ping', methods: { GET: open(health), HEAD: open(health) } },
  { pattern: '/metrics', methods: { GET: { endpoint: prometheus, operations: 'as configured' } } },
  {
    pattern: '/v1/basins',
    methods: { GET: permitted(listBasins, 'list-basins'), POST: permitted(createBasin, 'create-basin') },
  },
  {
    pattern: '/v1/basins/{basin}',
    methods: {
      GET: permitted(getBasinConfig, 'get-basin-config'),
      PUT: permitted(ensureBasin, 'create-basin', 'reconfigure-basin'),
      PATCH: permitted(reconfigureBasin, 'reconfigure-basin'),
      DELETE: permitted(deleteBasin, 'delete-basin'),
    },
  },
  {
    pattern: '/v1/streams',
    methods: {
      GET: permitted(listStreams, 'list-streams'),
      POST: permitted(createStream, 'create-stream'),
    },
  },
  {
    pattern: '/v1/streams/{stream}',
    methods: {
      GET: permitted(getStreamConfig, 'get-stream-config'),
      PUT: permitted(ensureStream, 'create-stream', 'reconfigure-stream'),
      PATCH: permitted(reconfigureStream, 'reconfigure-stream'),
      DELETE: permitted(deleteStream, 'delete-stream'),
    },
  },
  {
    pattern: '/v1/streams/{stream}/records',
    methods: { GET: permitted(read, 'read'), POST: permitted(append, 'append') },
  },
  { pattern: '/v1/streams/{stream}/records/tail', methods: { GET: permitted(checkTail, 'check-tail') } },
  {
    pattern: '/v1/access-tokens',
    methods: {
      GET: permitted(listAccessTokens, 'list-access-tokens'),
      POST: permitted(issueAccessToken, 'issue-access-token'),
    },
  },
  {
    pattern: '/v1/access-tokens/{id}',
    methods: { DELETE: permitted(revokeAccessToken, 'revoke-access-token') },
  },
  { pattern: '/v1/metrics', methods: { GET: permitted(accountMetrics, 'account-metrics') } },
  { pattern: '/v1/metrics/{basin}', methods: { GET: permitted(basinMetrics, 'basin-metrics') } },
  { pattern: '/v1/metrics/{basin}/{stream}', methods: { GET: permitted(streamMetrics, 'stream-metrics') } },
  { pattern: '/v1/locations', methods: { GET: permitted(listLocations, 'list-locations') } },
  {
    pattern: '/v1/locations/default',
    methods: {
      GET: permitted(getDefaultLocation, 'get-default-location'),
      PUT: permitted(setDefaultLocation, 'set-default-location'),
    },
  },
]

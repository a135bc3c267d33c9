import { append } from './endpoints/append.ts'
import {
  createBasin,
  createStream,
  deleteBasin,
  deleteStream,
  ensureBasin,
  ensureStream,
  getBasinConfig,
  getDefaultLocation,
  getStreamConfig,
  issueAccessToken,
  listAccessTokens,
  listBasins,
  listLocations,
  listStreams,
  reconfigureBasin,
  reconfigureStream,
  revokeAccessToken,
  setDefaultLocation,
} from './endpoints/control-plane.ts'
import {
  accountMetrics,
  anyBasinMetrics,
  anyStreamMetrics,
  basinMetrics,
  followers,
  health,
  openApi,
  prometheus,
  streamMetrics,
} from './endpoints/monitoring.ts'
import { servePage } from './endpoints/page.ts'
import { checkTail, read } from './endpoints/read.ts'
import type { HandlerSettings, HtmlPage } from './options.ts'
import { type Method, type Methods, permitted } from './request.ts'
import { type Route, Router } from './router.ts'

const HEALTH: Method = { endpoint: health, operations: 'public' }

/** Every endpoint (docs/protocol.md "Endpoints"). */
export const ROUTES: readonly Route<Methods>[] = [
  { pattern: '/health', target: { GET: HEALTH } },
  { pattern: '/ping', target: { GET: HEALTH } },
  { pattern: '/openapi.json', target: { GET: { endpoint: openApi, operations: 'public' } } },
  { pattern: '/followers', target: { GET: permitted(followers, 'account-metrics') } },
  { pattern: '/metrics/{basin}', target: { GET: permitted(anyBasinMetrics, 'basin-metrics') } },
  { pattern: '/metrics/{basin}/{stream}', target: { GET: permitted(anyStreamMetrics, 'stream-metrics') } },
  { pattern: '/metrics', target: { GET: { endpoint: prometheus, operations: 'metrics' } } },
  {
    pattern: '/v1/basins',
    target: { GET: permitted(listBasins, 'list-basins'), POST: permitted(createBasin, 'create-basin') },
  },
  {
    pattern: '/v1/basins/{basin}',
    target: {
      GET: permitted(getBasinConfig, 'get-basin-config'),
      PUT: permitted(ensureBasin, 'create-basin', 'reconfigure-basin'),
      PATCH: permitted(reconfigureBasin, 'reconfigure-basin'),
      DELETE: permitted(deleteBasin, 'delete-basin'),
    },
  },
  {
    pattern: '/v1/streams',
    target: {
      GET: permitted(listStreams, 'list-streams'),
      POST: permitted(createStream, 'create-stream'),
    },
  },
  {
    pattern: '/v1/streams/{stream}',
    target: {
      GET: permitted(getStreamConfig, 'get-stream-config'),
      PUT: permitted(ensureStream, 'create-stream', 'reconfigure-stream'),
      PATCH: permitted(reconfigureStream, 'reconfigure-stream'),
      DELETE: permitted(deleteStream, 'delete-stream'),
    },
  },
  {
    pattern: '/v1/streams/{stream}/records',
    target: { GET: permitted(read, 'read'), POST: permitted(append, 'append') },
  },
  { pattern: '/v1/streams/{stream}/records/tail', target: { GET: permitted(checkTail, 'check-tail') } },
  {
    pattern: '/v1/access-tokens',
    target: {
      GET: permitted(listAccessTokens, 'list-access-tokens'),
      POST: permitted(issueAccessToken, 'issue-access-token'),
    },
  },
  {
    pattern: '/v1/access-tokens/{id}',
    target: { DELETE: permitted(revokeAccessToken, 'revoke-access-token') },
  },
  { pattern: '/v1/metrics', target: { GET: permitted(accountMetrics, 'account-metrics') } },
  { pattern: '/v1/metrics/{basin}', target: { GET: permitted(basinMetrics, 'basin-metrics') } },
  { pattern: '/v1/metrics/{basin}/{stream}', target: { GET: permitted(streamMetrics, 'stream-metrics') } },
  { pattern: '/v1/locations', target: { GET: permitted(listLocations, 'list-locations') } },
  {
    pattern: '/v1/locations/default',
    target: {
      GET: permitted(getDefaultLocation, 'get-default-location'),
      PUT: permitted(setDefaultLocation, 'set-default-location'),
    },
  },
]

/** Serves a page at the path where the handler is mounted, and its scripts beside it. */
function pageRoutes(page: HtmlPage): Route<Methods>[] {
  return [...servePage(page)].map(([name, endpoint]) => ({
    pattern: `/${name}`,
    target: { GET: { endpoint, operations: 'public' } },
  }))
}

/** Finds the endpoints of the wire protocol. */
export function protocolRouter({ page }: HandlerSettings): Router<Methods> {
  return new Router(page === undefined ? ROUTES : [...ROUTES, ...pageRoutes(page)])
}

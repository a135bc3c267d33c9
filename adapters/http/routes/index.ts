import { HeadwaterError } from '../../../src/model/errors.ts'
import type { Endpoint, Route } from '../router.ts'
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
import { read } from './read.ts'
import {
  createStream,
  deleteStream,
  ensureStream,
  getStreamConfig,
  listStreams,
  reconfigureStream,
} from './streams.ts'

const notImplemented: Endpoint = () => {
  throw new HeadwaterError('not_implemented', 'Not implemented')
}

/** Every endpoint (wire-behaviour.md 1.2 and 1.3). */
export const ROUTES: readonly Route[] = [
  { pattern: '/health', methods: { GET: health, HEAD: health }, isPublic: true },
  { pattern: '/ping', methods: { GET: health, HEAD: health }, isPublic: true },
  { pattern: '/v1/basins', methods: { GET: listBasins, POST: createBasin } },
  {
    pattern: '/v1/basins/{basin}',
    methods: { GET: getBasinConfig, PUT: ensureBasin, PATCH: reconfigureBasin, DELETE: deleteBasin },
  },
  { pattern: '/v1/streams', methods: { GET: listStreams, POST: createStream } },
  {
    pattern: '/v1/streams/{stream}',
    methods: { GET: getStreamConfig, PUT: ensureStream, PATCH: reconfigureStream, DELETE: deleteStream },
  },
  { pattern: '/v1/streams/{stream}/records', methods: { GET: read, POST: append } },
  { pattern: '/v1/streams/{stream}/records/tail', methods: { GET: checkTail } },
  { pattern: '/v1/access-tokens', methods: { GET: notImplemented, POST: notImplemented } },
  { pattern: '/v1/access-tokens/{id}', methods: { DELETE: notImplemented } },
  { pattern: '/v1/metrics', methods: { GET: notImplemented } },
  { pattern: '/v1/metrics/{basin}', methods: { GET: notImplemented } },
  { pattern: '/v1/metrics/{basin}/{stream}', methods: { GET: notImplemented } },
  { pattern: '/v1/locations', methods: { GET: notImplemented } },
  { pattern: '/v1/locations/default', methods: { GET: notImplemented, PUT: notImplemented } },
]

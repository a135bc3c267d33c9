import { S2, type S2ClientOptions, S2Environment, type S2Stream } from '@s2-dev/streamstore'
import { afterAll, expect, vi } from 'vitest'
import type { RequestExchange } from '../../adapters/http/index.ts'
import type { NodeServer } from '../../adapters/node/index.ts'
import type { EngineLimits } from '../../src/engine/options.ts'
import { type Clock, type Engine, open } from '../../src/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { until } from '../node/support.ts'
import { testStorage } from '../support/index.ts'
import { serveObserved } from '../support/observed-server.ts'
import { openCountsOf } from '../support/open-counts.ts'
import { strings } from './records.ts'

type ClientOptions = Omit<Partial<S2ClientOptions>, 'accessToken' | 'endpoints'>

/** An engine behind a server on a real port. */
export interface Service {
  readonly hw: Engine
  readonly server: NodeServer
  /** Unexpected errors of the handler and the server. */
  readonly errors: unknown[]
  close(): Promise<void>
}

export async function startService(
  options: {
    storage?: Storage
    clock?: Clock
    limits?: Partial<EngineLimits>
    demandsTokens?: boolean
    /** Called with each request. */
    onRequest?: (exchange: RequestExchange) => void
  } = {},
): Promise<Service> {
  const { storage = testStorage(), demandsTokens = false, limits = {} } = options
  const hw = await open({
    storage,
    limits,
    usage: usageMetrics(),
    ...(options.clock && { clock: options.clock }),
  })
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const auth = demandsTokens ? 'token' : 'none'
  const server = await serveObserved(hw, { auth, onError }, { onRequest: options.onRequest })
  return {
    hw,
    server,
    errors,
    close: async () => {
      // Both at once: closing the engine ends the sessions that the server waits for.
      await Promise.all([server.close({ graceMs: 1_000 }), hw.close()])
    },
  }
}

/**
 * A service for all tests of a file. Afterwards, nothing may be open in it, and no error may have occurred
 * inside.
 */
export async function serviceOfFile(options?: Parameters<typeof startService>[0]): Promise<Service> {
  const service = await startService(options)
  afterAll(async () => {
    await untilIdle(service)
    await service.close()
    expect(service.errors).toEqual([])
  })
  return service
}

/** The published client, configured by the environment as its documentation recommends. */
export function clientOf(
  url: string,
  options: ClientOptions = {},
  token = 'any token: the service is open',
): S2 {
  vi.stubEnv('S2_ACCESS_TOKEN', token)
  vi.stubEnv('S2_ACCOUNT_ENDPOINT', url)
  vi.stubEnv('S2_BASIN_ENDPOINT', url)
  try {
    const { accessToken, endpoints } = S2Environment.parse()
    // An attempt delayed by a busy machine must not be retried: the retry would be a second append.
    return new S2({
      requestTimeoutMillis: 100_000,
      ...options,
      accessToken: accessToken!,
      endpoints: endpoints!,
    })
  } finally {
    vi.unstubAllEnvs()
  }
}

/** The transports of the client's sessions. Unary calls are the same in all of them. */
export interface Transport {
  readonly name: string
  readonly force: 'fetch' | 's2s'
  readonly options: ClientOptions
}

export const FETCH: Transport = { name: 'fetch with SSE', force: 'fetch', options: {} }
export const S2S: Transport = { name: 's2s', force: 's2s', options: {} }
const S2S_GZIP: Transport = { name: 's2s with gzip', force: 's2s', options: { compression: 'gzip' } }
const S2S_ZSTD: Transport = { name: 's2s with zstd', force: 's2s', options: { compression: 'zstd' } }

// The client compresses with `node:zlib`, which has zstd from Node 22.15 on.
const hasZstd = 'zstdCompressSync' in (await import('node:zlib'))

export const TRANSPORTS: readonly Transport[] = [FETCH, S2S, S2S_GZIP, ...(hasZstd ? [S2S_ZSTD] : [])]

/** Creates a basin and returns a function that creates streams in it, which are closed after the file. */
export async function basinOn(url: string, transport: Transport, options: ClientOptions = {}) {
  const s2 = clientOf(url, { ...transport.options, ...options })
  const name = freshName('basin')
  await s2.basins.create({ basin: name })
  const basin = s2.basin(name)
  const handles: S2Stream[] = []
  return {
    s2,
    name,
    basin,
    /** A handle of a stream by this transport. */
    handle(stream: string): S2Stream {
      const handle = basin.stream(stream, { forceTransport: transport.force })
      handles.push(handle)
      return handle
    },
    /** A new stream with the given records. */
    async stream(...bodies: string[]): Promise<S2Stream> {
      const stream = freshName('stream')
      await basin.streams.create({ stream, config: { timestamping: { uncapped: true } } })
      const handle = this.handle(stream)
      if (bodies.length > 0) await handle.append(strings(...bodies))
      return handle
    },
    async close() {
      for (const handle of handles) await handle.close()
    },
  }
}

export type ClientBasin = Awaited<ReturnType<typeof basinOn>>

/** The same for all tests of a file or of a `describe`. */
export async function basinOfFile(url: string, transport: Transport): Promise<ClientBasin> {
  const basin = await basinOn(url, transport)
  afterAll(() => basin.close())
  return basin
}

let names = 0

export function freshName(kind: string): string {
  return `${kind}-of-a-test-${++names}`
}

export function openCounts({ hw, server }: Pick<Service, 'hw' | 'server'>) {
  return { ...openCountsOf(hw), requests: server.counts().requests }
}

/** Waits until no read, append or request is open. */
export async function untilIdle(service: Pick<Service, 'hw' | 'server'>): Promise<void> {
  const sum = () => Object.values(openCounts(service)).reduce((total, count) => total + count, 0)
  await until(() => sum() === 0)
}

import { onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import type { Headwater } from '../../src/api/headwater.ts'
import { type Engine, type OpenOptions, open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { plainRequest } from './network.ts'

/**
 * How a client reaches an engine: a handler without a socket, with read sessions in frames or as events, or a
 * server with HTTP/1.1 only or with HTTP/2 for sessions.
 */
export const KINDS = ['handler', 'events', 'http1', 'http2'] as const
export type Kind = (typeof KINDS)[number]

/** A client of an engine. */
export interface Connected {
  readonly hw: Headwater
  readonly engine: Engine
  /** Of the engine, and of the client unless they are connected by sockets. */
  readonly clock: VirtualClock
}

interface OpenConnectedOptions {
  readonly engine?: Partial<OpenOptions>
  readonly handler?: HandlerOptions
  readonly client?: Partial<ConnectOptions>
}

/** Opens an engine, makes it reachable and connects to it. Everything is closed at the end of the test. */
export async function openConnected(kind: Kind, options: OpenConnectedOptions = {}): Promise<Connected> {
  const clock = testClock({ now: 1_000_000 })
  const engine = await open({ storage: testStorage(), usage: usageMetrics(), clock, ...options.engine })
  const handlerOptions: HandlerOptions = { auth: 'none', ...options.handler }
  if (kind === 'handler' || kind === 'events') {
    const handler = createHandler(engine, handlerOptions)
    const hw = await connect({
      url: 'http://localhost',
      fetch: kind === 'events' ? (request) => handler(plainRequest(request)) : handler,
      clock,
      random: () => 0.5,
      ...options.client,
    })
    onTestFinished(async () => {
      await hw.close()
      await engine.close()
    })
    return { hw, engine, clock }
  }
  const server = await serve(engine, { port: 0, ...handlerOptions })
  const hw = await connect({
    url: server.url,
    ...(kind === 'http1' && { fetch: (request: Request) => fetch(request) }),
    ...options.client,
  })
  onTestFinished(async () => {
    await hw.close()
    await server.close()
    await engine.close()
  })
  return { hw, engine, clock }
}

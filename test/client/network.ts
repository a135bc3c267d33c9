import { onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { faultyHandler } from '../../adapters/testing/index.ts'
import { type HeadwaterError, open } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'

interface Options extends Partial<ConnectOptions> {
  readonly handler?: HandlerOptions
}

/** A client of an engine behind an unreliable network, with the stream `basin/stream`. */
export async function connectUnreliably({ handler, ...options }: Options = {}) {
  const clock = testClock({ now: 1_000_000 })
  const engine = await open({ storage: testStorage(), clock })
  const requests: Request[] = []
  const handle = createHandler(engine, { auth: 'none', ...handler })
  const network = faultyHandler(handle, { clock })
  const hw = await connect({
    url: 'http://localhost',
    fetch: (request) => {
      requests.push(request)
      return network(request)
    },
    clock,
    random: () => 0.5,
    ...options,
  })
  onTestFinished(async () => {
    await hw.close()
    await engine.close()
  })
  await engine.ensureBasin('basin')
  await engine.basin('basin').ensureStream('stream')
  const stream = hw.basin('basin').stream('stream')
  const ofEngine = engine.basin('basin').stream('stream')
  return { hw, engine, clock, network, requests, stream, ofEngine }
}

/** A client of a server that responds as the function says. */
export async function connectTo(
  respond: (request: Request) => Response | Promise<Response>,
  options: Partial<ConnectOptions> = {},
) {
  const clock = testClock({ now: 1_000_000 })
  const requests: Request[] = []
  const hw = await connect({
    url: 'http://localhost',
    fetch: async (request) => {
      requests.push(request)
      return respond(request)
    },
    clock,
    random: () => 0.5,
    ...options,
  })
  onTestFinished(() => hw.close())
  return { hw, clock, requests, stream: hw.basin('basin').stream('stream') }
}

/** Settles while the virtual time advances. */
export async function whileTimePasses<Result>(
  clock: { advance(ms: number): Promise<void> },
  work: Promise<Result>,
): Promise<Result> {
  let isSettled = false
  const end = () => {
    isSettled = true
  }
  work.then(end, end)
  while (!isSettled) await clock.advance(1_000)
  return work
}

/** The error of a call. */
export function failureOf(call: Promise<unknown>): Promise<HeadwaterError> {
  return call.then(
    () => {
      throw new Error('succeeded')
    },
    (error) => error,
  )
}

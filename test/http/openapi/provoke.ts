import { expect } from 'vitest'
import { createDurableStreamsHandler } from '../../../adapters/durable-streams/index.ts'
import { createHandler, type HandlerOptions } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, type OpenOptions, open } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { testClock } from '../../support/index.ts'
import { BASIN, type CallOptions, requestOf } from '../support.ts'
import { Contract, type LocatedOperation } from './contract.ts'

const DURABLE = 'durable'
/** 44 characters: a key for each cipher. */
export const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

export type Init = CallOptions

type Send = (method: string, path: string, init?: Init) => Promise<Response>

/** Sends requests; `open` leaves the body to the caller, and compares nothing. */
export type Call = Send & { readonly open: Send }

type Target = Engine | (() => Promise<Engine>)

const contract = new Contract()
const problems: string[] = []

/** What differed from the document since the last call. */
export function problemsFound(): string[] {
  return problems.splice(0)
}

export function unseen(): string[] {
  return contract.unseen()
}

/** A page for `/`. */
const PAGE = { html: '<!doctype html>', contentSecurityPolicy: "default-src 'none'" }

/** Calls both protocols on an engine. Each reply is compared with the document. */
export function callerOf(hw: Target, options: HandlerOptions = {}): Call {
  const common: HandlerOptions = { auth: 'none', onError: () => {}, ...options }
  const wire = createHandler(hw, { page: PAGE, ...common })
  const { basin: _basin, page: _page, publicMetrics: _public, basinDomains: _domains, ...shared } = common
  const durable = createDurableStreamsHandler(hw as Engine, { ...shared, basin: DURABLE, longPollMs: 1 })
  const send = (request: Request) =>
    new URL(request.url).pathname.startsWith('/v1/stream/') ? durable(request) : wire(request)
  const open: Send = (method, path, init = {}) => send(requestOf(method, path, init))
  const call: Send = async (method, path, init = {}) => {
    const request = requestOf(method, path, init)
    const text = typeof init.body === 'string' ? init.body : undefined
    const requestBody = init.json === undefined ? text : JSON.stringify(init.json)
    const requestHeaders = new Headers(request.headers)
    const response = await send(request)
    const body = new Uint8Array(await response.arrayBuffer())
    const { status, headers } = response
    const exchange = { method, url: request.url, requestHeaders, requestBody, status, headers, body }
    problems.push(...contract.check(exchange))
    // `Response` refuses a body for these, even an empty one.
    return new Response(body.length === 0 ? null : body, { status, headers })
  }
  return Object.assign(call, { open })
}

const PARAMETERS: Readonly<Record<string, string>> = { basin: BASIN, stream: 's', id: 'a-token', path: 's' }

/** Bodies that are accepted. */
const BODIES: Readonly<Record<string, unknown>> = {
  createBasin: { basin: 'another-basin' },
  ensureBasin: {},
  reconfigureBasin: {},
  createStream: { stream: 'another' },
  ensureStream: {},
  reconfigureStream: {},
  append: { records: [{ body: 'hello' }] },
  issueAccessToken: { id: 'issued', scope: { ops: ['read'] } },
  setDefaultLocation: 'aws:us-east-1',
}

const METRIC_SETS: Readonly<Record<string, string>> = {
  accountMetrics: 'account-ops',
  basinMetrics: 'append-ops',
  anyBasinMetrics: 'append-ops',
  streamMetrics: 'storage',
  anyStreamMetrics: 'storage',
}

/** An ordinary request for an operation. */
export function sampleOf({ path, method, operation }: LocatedOperation): [string, string, Init] {
  const { operationId } = operation
  const concrete = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PARAMETERS[name]!)
  const set = METRIC_SETS[operationId]
  const query = set === undefined ? '' : `?set=${set}&start=0&end=60`
  const json = BODIES[operationId]
  const isDurableAppend = operationId === 'appendToDurableStream'
  const plain = { headers: { 'content-type': 'application/octet-stream' }, body: 'hello' }
  const init = json === undefined ? (isDurableAppend ? plain : {}) : { json }
  return [method.toUpperCase(), `${concrete}${query}`, init]
}

/** Opens an engine with the basin and the stream that samples name, in both protocols. */
export async function opened(options: Partial<OpenOptions> = {}): Promise<Engine> {
  const hw = await open({ storage: memory(), usage: usageMetrics(), clock: testClock(), ...options })
  const request = hw.onConnection({})
  for (const basin of [BASIN, DURABLE]) {
    await request.createBasin(basin)
    await hw.basin(basin).createStream('s')
  }
  await hw.basin(BASIN).stream('s').append('hello')
  await hw.issueAccessToken({ id: 'a-token', scope: { ops: ['read'] } })
  return hw
}

/** Requests by method and path, each with the status that it must have. */
export type Row = readonly [status: number, method: string, path: string, init?: Init]

export async function expectStatuses(call: Call, rows: readonly Row[]): Promise<void> {
  for (const [status, method, path, init] of rows) {
    const response = await call(method, path, init)
    expect([method, path, response.status, response.status === status ? '' : await response.text()]).toEqual([
      method,
      path,
      status,
      '',
    ])
  }
}

import { onTestFinished } from 'vitest'
import { ClientCore } from '../../adapters/client/core.ts'
import { type ConnectOptions, settingsOf } from '../../adapters/client/options.ts'
import { RemoteHeadwater } from '../../adapters/client/remote.ts'
import { createHandler } from '../../adapters/http/index.ts'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import { exportEntries } from '../../adapters/transfer/export-entries.ts'
import { importEntries } from '../../adapters/transfer/import-entries.ts'
import type { ImportOptions } from '../../adapters/transfer/import-stream.ts'
import { entriesOf, linesOfEntries } from '../../adapters/transfer/lines.ts'
import {
  EVERYTHING,
  Service,
  type ServiceOptions,
  type TransferFilter,
} from '../../adapters/transfer/service.ts'
import { type Basin, type Clock, type Engine, type Headwater, open, type Stream } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { BasinConfigInput } from '../../src/model/config.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { testClock, testStorage } from '../support/index.ts'

export const KEY = Buffer.alloc(32, 7).toString('base64')
export const NOW = Date.UTC(2030, 0, 1)

/** `directory`: an engine in this process. `server`: a service that offers only the HTTP API. */
export type Kind = 'directory' | 'server'

export interface Endpoint {
  readonly hw: Engine
  readonly clock: VirtualClock
  readonly service: Service
  /** The basin `basin-a`. */
  readonly basin: Basin
  /** A stream of that basin. */
  stream(name: string): Stream
  /** Sends a request to the handler of the engine. */
  readonly fetch: Fetch
  /** All requests, as `PUT /v1/basins/b`. */
  readonly requests: string[]
  with(options: Partial<ServiceOptions & Pick<ConnectOptions, 'fetch' | 'token'>>): Service
}

type Fetch = NonNullable<ConnectOptions['fetch']>

export async function openEndpoint(
  options: { kind?: Kind; clock?: VirtualClock; storage?: Storage; wrapFetch?: (fetch: Fetch) => Fetch } = {},
): Promise<Endpoint> {
  const {
    kind = 'server',
    clock = testClock(),
    storage = testStorage(),
    wrapFetch = (fetch) => fetch,
  } = options
  // A trim applies to the next export at once.
  const hw = await open({ storage, clock, autoCreate: false, trimGraceMs: 0 })
  onTestFinished(() => hw.close())
  const requests: string[] = []
  const handler = createHandler(hw, { auth: 'none' })
  const fetch = wrapFetch((request) => {
    requests.push(`${request.method} ${new URL(request.url).pathname}`)
    return handler(request)
  })
  const withOptions: Endpoint['with'] = ({ fetch: otherFetch = fetch, token, ...options }) =>
    new Service(kind === 'directory' ? hw : clientOf({ fetch: otherFetch, token }), {
      encryptionKey: KEY,
      ...options,
    })
  const basin = hw.basin('basin-a')
  const stream = (name: string) => basin.stream(name)
  const service = withOptions({})
  return { hw, clock, service, basin, stream, fetch, requests, with: withOptions }
}

/** An endpoint with streams of these names. */
export async function withStreams(
  names: readonly string[],
  options: Parameters<typeof openEndpoint>[0] & { readonly config?: BasinConfigInput } = {},
): Promise<Endpoint> {
  const endpoint = await openEndpoint(options)
  await endpoint.hw.createBasin('basin-a', options.config)
  for (const name of names) await endpoint.basin.createStream(name)
  return endpoint
}

/** A client as the command line uses it, without waiting between attempts. */
export function clientOf(options: Partial<ConnectOptions>): Headwater {
  const settings = { url: 'http://localhost', clock: immediateClock(), defaultRetention: 'server' as const }
  return new RemoteHeadwater(new ClientCore(settingsOf({ ...settings, ...options })))
}

/** A clock whose short timers fire immediately and whose timeouts never do. */
function immediateClock(): Clock & { readonly pauses: number[]; readonly pending: number } {
  const pauses: number[] = []
  let pending = 0
  return {
    pauses,
    get pending() {
      return pending
    },
    now: () => NOW,
    schedule(delayMs, callback) {
      if (delayMs >= 30_000) {
        pending++
        let isArmed = true
        return () => {
          if (isArmed) pending--
          isArmed = false
        }
      }
      pauses.push(delayMs)
      const timer = setImmediate(callback)
      return () => clearImmediate(timer)
    },
  }
}

export async function exported(service: Service, filter: TransferFilter = EVERYTHING): Promise<string> {
  return textOf(linesOfEntries(exportEntries(service, { filter, now: NOW })))
}

async function textOf(lines: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const bytes of lines) text += Buffer.from(bytes).toString()
  return text
}

export function imported(service: Service, input: string | Uint8Array, options: Partial<ImportOptions> = {}) {
  const bytes = typeof input === 'string' ? utf8(input) : input
  return importEntries(entriesOf(chunks(bytes)), service, { filter: EVERYTHING, resume: false, ...options })
}

/** Splits the input, so that lines span chunks. */
export async function* chunks(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The lines that are equal after an import: all but the header, without creation times. */
export function contentOf(text: string): string {
  return text.slice(text.indexOf('\n') + 1).replaceAll(/"created_at":"[^"]*",/g, '')
}

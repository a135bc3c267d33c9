import { EventEmitter } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { CliContext, StorageFactory } from '../../adapters/cli/context.ts'
import { runCli } from '../../adapters/cli/program.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open, systemClock } from '../../src/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { usageMetrics } from '../../src/usage/index.ts'

export const ROOT_TOKEN = 'the-root-token-of-a-test'

export interface Run {
  readonly out: string[]
  readonly err: string[]
  readonly exits: number[]
  readonly signals: EventEmitter
  readonly exitCode: Promise<number>
  advance(ms: number): void
  /** Waits until a server is ready, and resolves to its URL. */
  ready(): Promise<string>
}

/** Runs the command in this process, with a context of its own. */
export function run(args: readonly string[], world: Partial<CliContext> = {}): Run {
  const out: string[] = []
  const err: string[] = []
  const exits: number[] = []
  const signals = new EventEmitter()
  let now = 0
  let printed: (() => void) | undefined
  const exitCode = runCli(args, {
    storages: testStorages(),
    env: {},
    fetch: () => Promise.reject(new Error('no service in this test')),
    clock: systemClock,
    print: (line) => {
      out.push(line)
      printed?.()
    },
    printError: (line) => {
      err.push(line)
      printed?.()
    },
    input: () => Readable.from([]),
    output: () => new PassThrough(),
    terminal: undefined,
    signals,
    now: () => now,
    exitNow: (code) => exits.push(code),
    ...world,
  })
  onTestFinished(async () => {
    signals.emit('SIGTERM')
    await exitCode
  })
  return {
    out,
    err,
    exits,
    signals,
    exitCode,
    advance: (ms) => {
      now += ms
    },
    ready: async () => {
      const said = () => [...out, ...err]
      while (!said().includes('Press Ctrl+C to stop.')) {
        await new Promise<void>((resolve) => (printed = resolve))
      }
      return /https?:\S+/.exec(said().find((line) => line.includes('listens on'))!)![0]
    },
  }
}

export interface Result {
  readonly exitCode: number
  readonly out: readonly string[]
  readonly err: readonly string[]
}

/** Runs a command that ends on its own. */
export async function resultOf(args: readonly string[], world: Partial<CliContext> = {}): Promise<Result> {
  const { exitCode, out, err } = run(args, world)
  return { exitCode: await exitCode, out, err }
}

/** Standard output for commands that write bytes, and what was written. */
export function byteOutput() {
  const stream = new PassThrough()
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const text = () => Buffer.concat(chunks).toString()
  return { output: () => stream, text, lines: () => text().split('\n').slice(0, -1) }
}

/**
 * Storages in memory. Each directory has one, which keeps its data from one command to the next, and is
 * `storage` unless it is listed.
 */
export function testStorages({
  storage,
  directories = new Map(),
}: {
  readonly storage?: Storage
  readonly directories?: Map<string, Storage>
} = {}): StorageFactory {
  return {
    memory: () => storage ?? memory(),
    filesystem(directory) {
      const existing = directories.get(directory) ?? storage ?? memory()
      directories.set(directory, existing)
      return existing
    },
    sqlite: (path) => directories.get(path) ?? memory(),
    postgres: (connectionString) => directories.get(connectionString) ?? memory(),
    s3: () => memory(),
  }
}

/** A storage that counts its sessions. */
export function counted(storage: Storage, beforeClose = async () => {}) {
  const counts = { opened: 0, closed: 0 }
  const watched: Storage = {
    manifest: storage.manifest,
    async open(context) {
      const session = await storage.open(context)
      counts.opened++
      return new Proxy(session, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function') return value
          if (name !== 'close') return value.bind(target)
          return async () => {
            await beforeClose()
            counts.closed++
            return target.close()
          }
        },
      })
    },
  }
  return { storage: watched, counts }
}

/** A service that requires tokens unless it is `open`, called without a socket. */
export async function service(options: { open?: boolean; clock?: CliContext['clock'] } = {}): Promise<{
  hw: Engine
  requests: Request[]
  world: Pick<CliContext, 'fetch' | 'clock'>
}> {
  const { open: isOpen = false, clock = systemClock } = options
  const hw = await open({ storage: memory(), clock, usage: usageMetrics() })
  onTestFinished(() => hw.close())
  await hw.setRootToken(ROOT_TOKEN)
  const requests: Request[] = []
  const handler = createHandler(hw, { auth: isOpen ? 'none' : 'token' })
  const fetch = (request: Request) => {
    requests.push(request.clone())
    return handler(request)
  }
  return { hw, requests, world: { fetch, clock } }
}

/** A terminal of 100 columns, and all that was drawn on it so far. */
export function fakeTerminal(): { readonly terminal: NodeJS.WriteStream; drawn(): string } {
  const stream = new PassThrough()
  let text = ''
  stream.on('data', (piece) => {
    text += piece
  })
  const terminal = Object.assign(stream, { isTTY: true, columns: 100 }) as unknown as NodeJS.WriteStream
  return { terminal, drawn: () => text }
}

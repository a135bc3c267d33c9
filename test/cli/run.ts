import { EventEmitter } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/cli-context.ts'
import { runCli } from '../../adapters/cli/run-cli.ts'
import type { StorageKind } from '../../adapters/cli/storages.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Headwater, open, type Storage, systemClock } from '../../src/index.ts'

export const ROOT_TOKEN = 'the-root-token-of-a-test'

export interface Run {
  readonly out: string[]
  readonly err: string[]
  readonly exits: number[]
  readonly signals: EventEmitter
  readonly exitCode: Promise<number>
  advance(ms: number): void
  /** Waits until a server is ready, and resolves to its address. */
  ready(): Promise<string>
}

/** Runs the command in this process, with a world of its own. */
export function run(args: readonly string[], world: Partial<CliContext> = {}): Run {
  const out: string[] = []
  const err: string[] = []
  const exits: number[] = []
  const signals = new EventEmitter()
  let now = 0
  let printed: (() => void) | undefined
  const exitCode = runCli(args, {
    storages: [memoryKind()],
    env: {},
    fetch: () => Promise.reject(new Error('no service in this test')),
    clock: systemClock,
    print: (line) => {
      out.push(line)
      printed?.()
    },
    printError: (line) => err.push(line),
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
      while (!out.includes('Press Ctrl+C to stop.')) await new Promise<void>((resolve) => (printed = resolve))
      return /http:\S+/.exec(out[0]!)![0]
    },
  }
}

export interface Result {
  readonly exitCode: number
  readonly out: readonly string[]
  readonly err: readonly string[]
}

/** Runs a command that ends by itself. */
export async function resultOf(args: readonly string[], world: Partial<CliContext> = {}): Promise<Result> {
  const { exitCode, out, err } = run(args, world)
  return { exitCode: await exitCode, out, err }
}

/** `memory`, on a storage to look at if one is given. */
export function memoryKind(storage?: Storage): StorageKind {
  return { name: 'memory', place: 'process', note: 'soon gone', create: () => storage ?? memory() }
}

/** A storage that lives in directories: what was left in one is found again. */
export function directoryKind(storages = new Map<string, Storage>()): StorageKind {
  return {
    name: 'shelf',
    place: 'directory',
    note: 'stays',
    create: (directory) => {
      const storage = storages.get(directory) ?? memory()
      storages.set(directory, storage)
      return storage
    },
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

/** A service that demands tokens, without a socket between. */
export async function service(options: { open?: boolean; clock?: CliContext['clock'] } = {}): Promise<{
  hw: Headwater
  requests: Request[]
  world: Pick<CliContext, 'fetch' | 'clock'>
}> {
  const { open: isOpen = false, clock = systemClock } = options
  const hw = await open({ storage: memory(), clock })
  onTestFinished(() => hw.close())
  await hw.setRootToken(ROOT_TOKEN)
  const requests: Request[] = []
  const handler = createHandler(hw, { open: isOpen })
  const fetch = (request: Request) => {
    requests.push(request.clone())
    return handler(request)
  }
  return { hw, requests, world: { fetch, clock } }
}

import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import type { CliContext } from '../../adapters/cli/context.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Clock, systemClock } from '../../src/index.ts'
import { byteOutput, type Result, resultOf, service, testStorages } from './run.ts'

/** A storage or a server, which keeps its data from one command to the next. */
interface TestTarget {
  /** Options that select it. */
  readonly options: readonly string[]
  readonly world: Partial<CliContext>
  /** Runs a command, given as words separated by spaces or as a list, with standard input. */
  command(
    words: string | readonly string[],
    input?: string | Uint8Array | readonly Uint8Array[],
  ): Promise<Result & { readonly written: readonly string[] }>
}

function testTarget(options: readonly string[], world: Partial<CliContext>): TestTarget {
  return {
    options,
    world,
    async command(words, input = '') {
      const { output, lines } = byteOutput()
      const chunks = typeof input === 'string' || input instanceof Uint8Array ? [Buffer.from(input)] : input
      const args = typeof words === 'string' ? words.split(' ') : words
      const [command, ...rest] = args
      const result = await resultOf([command!, ...options, ...rest], {
        ...world,
        output,
        input: () => Readable.from(chunks),
      })
      return { ...result, written: lines() }
    },
  }
}

async function serverTarget(clock: Clock = systemClock): Promise<TestTarget> {
  const { world } = await service({ open: true, clock })
  return testTarget([], world)
}

/** The directory exists; its storage is in memory. */
async function storageTarget(clock: Clock = systemClock): Promise<TestTarget> {
  const directory = tmpdir()
  const storages = testStorages({ directories: new Map([[directory, memory()]]) })
  return testTarget(['--storage', directory], { storages, clock })
}

/** With the retention that a target gives by default. */
export const TARGETS = [
  ['a storage', storageTarget, { text: 'forever', setting: { 'retention_policy.infinite': 'yes' } }],
  ['a server', serverTarget, { text: 'for 7 days', setting: { 'retention_policy.age': '604800' } }],
] as const

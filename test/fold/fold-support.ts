import { onTestFinished } from 'vitest'
import { type Fold, type FoldOptions, fold } from '../../adapters/fold/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import {
  type Engine,
  type Headwater,
  open,
  type Storage,
  type Stream,
  type TextRecord,
} from '../../src/index.ts'
import { EMPTY_SCAN, type FoldSnapshot, scanSnapshots, snapshotPartOf } from '../../src/sync/fold.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'

/** The storages that folds are tested on. Each call of the function makes another one. */
export const STORAGES: readonly (readonly [name: string, create: () => Promise<Storage>])[] = [
  ['memory', async () => memory()],
  ['filesystem', async () => filesystem(await temporaryDirectory(), { durability: 'process-crash' })],
]

/** An engine with a basin and a stream. */
export async function openLog(storage: Storage = memory()) {
  const clock = virtualClock({ now: 1_000_000 })
  const hw = await open({ storage, clock })
  onTestFinished(() => hw.close())
  await hw.ensureBasin('app')
  return { hw, clock, log: logOf(hw) }
}

/** The stream that is folded. */
export function logOf(hw: Headwater): Stream {
  return hw.basin('app').stream('log')
}

/** The stream of the snapshots of {@link foldText}. */
export function snapshotsOf(hw: Engine): Stream {
  return hw.basin('app').stream('.fold/default/log')
}

/** The complete snapshot that is stored, if there is one. */
export async function storedSnapshots(hw: Engine): Promise<readonly FoldSnapshot[]> {
  if (!(await snapshotsOf(hw).exists())) return []
  const records = await snapshotsOf(hw).read({}, { as: 'bytes' }).toArray()
  const kind = records.map(snapshotPartOf).findLast((part) => part !== undefined)
  const newest = kind && scanSnapshots(EMPTY_SCAN, records, kind).newest
  return newest === undefined ? [] : [newest]
}

/** Reduces records to their bodies, and counts the calls. */
function joiner() {
  const reducer = {
    calls: 0,
    reduce: (text: string, { body }: TextRecord) => {
      reducer.calls++
      return `${text}${body} `
    },
  }
  return reducer
}

/** A fold of bodies, which fails the test if a snapshot fails. */
export function foldText(log: Stream, options: Partial<FoldOptions<string, TextRecord>> = {}): Fold<string> {
  const made = fold(log, {
    initial: '',
    reduce: joiner().reduce,
    version: 1,
    onSnapshotError: (error) => {
      throw error
    },
    ...options,
  })
  onTestFinished(() => made.close())
  return made
}

/** As many bodies as asked for, from a number on. */
export const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => String(from + index))
/** What {@link foldText} makes of bodies. */
export const textOf = (bodies: readonly string[]) => bodies.map((body) => `${body} `).join('')

/** Folds the log to the end, and closes the fold. Resolves to the value, and the number of records read. */
export async function reopened(log: Stream, options: Parameters<typeof foldText>[1] = {}) {
  const reducer = joiner()
  const text = foldText(log, { reduce: reducer.reduce, ...options })
  const value = await text.loaded()
  await text.close()
  return { value, calls: reducer.calls }
}

/** A fold whose state is as large as a test wants, and which changes with each record. */
export function foldPadded(
  log: Stream,
  bytes: number,
  options: { readonly onSnapshotError?: () => void } = {},
) {
  const initial = { bodies: [] as string[], padding: 'x'.repeat(bytes) }
  return fold(log, {
    initial,
    reduce: ({ bodies, padding }, { body }: TextRecord) => ({ bodies: [...bodies, body], padding }),
    version: 1,
    snapshotEvery: 1,
    ...options,
  })
}

/** What a fold emits from now on, and how it ends. */
export function watch<State>(values: Fold<State>) {
  const seen: unknown[] = []
  const subscription = values.value$.subscribe({
    next: (value) => seen.push(value),
    error: (error) => seen.push(error),
    complete: () => seen.push('complete'),
  })
  onTestFinished(() => subscription.unsubscribe())
  return { seen, stop: () => subscription.unsubscribe() }
}

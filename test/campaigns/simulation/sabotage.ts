import { expect } from 'vitest'
import type { Basin, ReadEvent, RecordCursor, Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { AppendRequest, StorageSession } from '../../../src/storage/contract.ts'
import { wrapped } from '../../support/index.ts'
import { report, shorten } from './report.ts'
import { run } from './simulation.ts'
import type { Sabotage } from './world.ts'

/** A small number of seeds, each of which must detect the defect at least once. */
const SEEDS = 250
const STEPS = 300
/** The probability of the defect. */
const PROBABILITY = 0.1

type Trigger = () => boolean

function triggerOf(prng: Prng): Trigger {
  return () => prng.chance(PROBABILITY)
}

export function onStorage(
  change: (session: StorageSession, triggers: Trigger) => Partial<StorageSession>,
): Sabotage {
  return { storage: (storage, prng) => wrapped(storage, {}, (session) => change(session, triggerOf(prng))) }
}

/** Appends that store something else. */
export function withChangedAppends(change: (request: AppendRequest) => AppendRequest): Sabotage {
  return onStorage((session, triggers) => ({
    append: (request) => session.append(triggers() ? change(request) : request),
  }))
}

export function onStream(change: (stream: Stream, triggers: Trigger) => Partial<Stream>): Sabotage {
  return { stream: (stream, prng) => overridden(stream, change(stream, triggerOf(prng))) }
}

export function onBasin(change: (basin: Basin, triggers: Trigger) => Partial<Basin>): Sabotage {
  return { basin: (basin, prng) => overridden(basin, change(basin, triggerOf(prng))) }
}

/** Read sessions with some events replaced. */
export function onCursor(
  change: (cursor: RecordCursor, event: ReadEvent | undefined) => Promise<ReadEvent | undefined>,
): Sabotage {
  return onStream((stream, triggers) => ({
    openCursor: async (...args) => {
      const cursor = await stream.openCursor(...args)
      if (cursor === undefined) return undefined
      const next = async () => {
        const event = await cursor.next()
        return event?.kind === 'batch' && triggers() ? change(cursor, event) : event
      }
      return overridden(cursor, { next })
    },
  }))
}

export function overridden<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_, property: keyof Target & string) => {
      const value = own[property] ?? target[property]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A defect, and what the simulation says about it. */
export type Defect = readonly [title: string, expected: RegExp, sabotage: Sabotage]

/** Expects that some seed finds the defect, and that its report has the steps that show it. */
export async function expectFound(expected: RegExp, sabotage: Sabotage): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const options = { seed, steps: STEPS, sabotage }
    const result = await run(options)
    if (result.violation === undefined) continue
    expect(result.violation.expected).toMatch(expected)
    const shortened = await shorten(options, result)
    expect(shortened.violation).toBeDefined()
    expect(shortened.steps).toBeLessThanOrEqual(result.steps)
    const text = report(shortened)
    expect(text).toContain(`npm run sim -- --seed ${seed} --steps ${shortened.steps}`)
    return
  }
  expect.fail(`${SEEDS} seeds did not find it`)
}

// @module-tag slow

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Fold, fold } from '../../adapters/fold/index.ts'
import { type Engine, open, type Storage, type TextRecord } from '../../src/index.ts'
import { logOf, STORAGES } from './fold-support.ts'

/** A reducer whose value depends on every record and on their order. */
const hash = (value: number, { body, seqNum }: Pick<TextRecord, 'body' | 'seqNum'>) =>
  Array.from(body).reduce((sum, char) => (sum * 31 + char.codePointAt(0)!) % 1_000_003, value * 7 + seqNum)

type Step =
  | { readonly kind: 'append'; readonly bodies: readonly string[] }
  | { readonly kind: 'open' | 'crash' | 'close'; readonly tab: number }
  | { readonly kind: 'restart' | 'trim' | 'upgrade' }

const bodies = fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 20 })
const tab = fc.nat(2)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('append' as const), bodies }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('open' as const), tab }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('crash' as const, 'close' as const), tab }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'trim' as const, 'upgrade' as const) }),
  },
)

/** A stream with folds in several tabs, and the value that they must have. */
class World {
  readonly #storage: Storage
  readonly #snapshotEvery: number
  readonly #tabs = new Map<number, { readonly made: Fold<number>; readonly controller: AbortController }>()
  #hw!: Engine
  #version = 1
  #isTrimmed = false
  #expected = 0
  #position = 0

  constructor(storage: Storage, snapshotEvery: number) {
    this.#storage = storage
    this.#snapshotEvery = snapshotEvery
  }

  async open(): Promise<void> {
    this.#hw = await open({ storage: this.#storage })
    await this.#hw.ensureBasin('app')
    await this.#hw.basin('app').ensureStream('log')
  }

  async take(step: Step): Promise<void> {
    if (step.kind === 'append') return this.#append(step.bodies)
    if (step.kind === 'open') return this.#openTab(step.tab)
    if (step.kind === 'restart') return this.#restart()
    if (step.kind === 'trim') return this.#trim()
    if (step.kind === 'crash' || step.kind === 'close') return this.#endTab(step.tab, step.kind === 'crash')
    // The history is needed for an upgrade.
    if (!this.#isTrimmed) this.#version++
  }

  /** All folds, and one that is opened now, equal the reduction of the whole stream. */
  async check(): Promise<void> {
    this.#openTab(9)
    for (const { made } of this.#tabs.values()) {
      expect(await made.reached(this.#position)).toBe(this.#expected)
      expect(made.position).toBe(this.#position)
    }
    await this.#endTab(9, false)
  }

  async close(): Promise<void> {
    for (const tab of [...this.#tabs.keys()]) await this.#endTab(tab, false)
    await this.#hw.close()
  }

  async #append(added: readonly string[]): Promise<void> {
    await logOf(this.#hw).append(added)
    for (const body of added) this.#expected = hash(this.#expected, { body, seqNum: this.#position++ })
  }

  #openTab(tab: number, snapshotEvery = this.#snapshotEvery): void {
    if (this.#tabs.has(tab)) return
    const controller = new AbortController()
    const { signal } = controller
    const options = { initial: 0, reduce: hash, version: this.#version, snapshotEvery, signal }
    this.#tabs.set(tab, { made: fold(logOf(this.#hw), options), controller })
  }

  async #endTab(tab: number, isCrash: boolean): Promise<void> {
    const { made, controller } = this.#tabs.get(tab) ?? {}
    this.#tabs.delete(tab)
    if (isCrash) controller?.abort('crash')
    await made?.close()
  }

  /** Closes the engine under folds that are open. */
  async #restart(): Promise<void> {
    await this.#hw.close()
    for (const tab of [...this.#tabs.keys()]) await this.#endTab(tab, false)
    await this.open()
  }

  /** Trims everything that a snapshot covers. Tabs of other versions would replace the snapshot. */
  async #trim(): Promise<void> {
    if (this.#version > 1) return
    this.#isTrimmed = true
    await this.check()
    this.#openTab(8, 1)
    await this.#tabs.get(8)!.made.reached(this.#position)
    await this.#endTab(8, false)
    await logOf(this.#hw).trim(this.#position++)
  }
}

describe.each(STORAGES)('on %s', (_, create) => {
  test('a fold equals the reduction of the whole stream after any appends, restarts and snapshots', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 40 }),
        fc.integer({ min: 1, max: 30 }),
        async (steps, snapshotEvery) => {
          const world = new World(await create(), snapshotEvery)
          await world.open()
          for (const each of steps) await world.take(each)
          await world.check()
          await world.close()
        },
      ),
    )
  })
})

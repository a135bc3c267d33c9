import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../../adapters/testing/index.ts'
import { closeRecord, type Engine, HeadwaterError, open, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { testClock } from '../../support/clock.ts'
import { storageFaultsAtRandom } from '../../support/random-faults.ts'

const PRODUCERS = 4
const BATCHES = 10

/** Engines on one storage that fails, and that are replaced while producers append. */
class Cluster {
  readonly #engines: Engine[] = []
  readonly #prng: Prng
  readonly #open: () => Promise<Engine>

  constructor(prng: Prng, openEngine: () => Promise<Engine>) {
    this.#prng = prng
    this.#open = openEngine
  }

  /** The stream through any engine; one of them may be another than before. */
  async stream(): Promise<Stream> {
    if (this.#engines.length < 2) this.#engines.push(await this.#open())
    else if (this.#prng.chance(0.1)) {
      const [closed] = this.#engines.splice(this.#prng.below(2), 1)
      closed!.close().catch(() => {})
      this.#engines.push(await this.#open())
    }
    return this.#prng.pick(this.#engines).basin('basin').stream('stream')
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#engines.map((engine) => engine.close()))
  }
}

/** What the failures of the storage and closing engines cause. */
const EXPECTED = ['storage', 'closed', 'transaction_conflict', 'unavailable']

/** Appends a batch until it is acknowledged. Often appends it twice at the same time, or once more later. */
async function appendUntilAcked(cluster: Cluster, prng: Prng, id: string, seq: number, body: string) {
  const records = [{ body }]
  for (;;) {
    const stream = await cluster.stream()
    const attempts = Array.from({ length: prng.pick([1, 1, 2]) }, () =>
      stream.append(records, { producer: { id, epoch: 0, seq } }),
    )
    const outcomes = await Promise.allSettled(attempts)
    const acks = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue
      expect(HeadwaterError.is(outcome.reason) && EXPECTED).toContain(outcome.reason.code)
    }
    expect(new Set(acks.map(({ start }) => start.seqNum)).size).toBeLessThanOrEqual(1)
    expect(acks.filter(({ duplicate }) => duplicate === undefined).length).toBeLessThanOrEqual(1)
    if (acks.length > 0 && !prng.chance(0.1)) return acks[0]!.start.seqNum
  }
}

it.each([1, 2, 3])(
  'producers that retry on failing engines are stored once and in order, and then closed (seed %i)',
  async (seed) => {
    const prng = new Prng(seed)
    const inner = memory()
    const clock = testClock()
    const setup = await open({ storage: inner, clock })
    await setup.ensureBasin('basin')
    await setup.basin('basin').ensureStream('stream')
    // Half of the failures come after the append was made.
    const storage = faultyStorage(inner)
    storageFaultsAtRandom(storage, seed, { append: { before: 0.1, after: 0.1 }, head: { before: 0.05 } })
    const cluster = new Cluster(prng, () => open({ storage, clock }))
    const positions = new Map<number, string>()
    await Promise.all(
      Array.from({ length: PRODUCERS }, async (_, producer) => {
        for (let seq = 0; seq < BATCHES; seq++) {
          const body = `${producer}.${seq}`
          positions.set(await appendUntilAcked(cluster, prng, `p${producer}`, seq, body), body)
        }
      }),
    )
    await cluster.close()
    const stream = setup.basin('basin').stream('stream')
    await stream.append('not of a producer', { producer: { id: 'late', epoch: 0, seq: 1 } }).catch(() => {})
    await stream.append(closeRecord())
    const stored = await stream.read({}, { commands: false }).toArray()
    expect(stored.map(({ seqNum, body }) => [seqNum, body])).toEqual([...positions].sort(([a], [b]) => a - b))
    expect(stored).toHaveLength(PRODUCERS * BATCHES)
    for (let producer = 0; producer < PRODUCERS; producer++) {
      const own = stored.filter(({ body }) => body.startsWith(`${producer}.`)).map(({ body }) => body)
      expect(own).toEqual(Array.from({ length: BATCHES }, (_, seq) => `${producer}.${seq}`))
    }
    await setup.close()
  },
)

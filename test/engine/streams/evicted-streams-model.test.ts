import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Basin, type Engine, open, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { codeOf, outcomeOf, readAll, testClock, wrapped } from '../../support/index.ts'

const SEEDS = 2
const STEPS = 100

/** The expected state of a stream. */
interface Model {
  exists: boolean
  readonly bodies: string[]
  /** The body of an append whose outcome is not known. */
  unknown: string | undefined
  /** The next sequence number of its producer. */
  seq: number
  trimPoint: number
}

const newModel = (): Model => ({ exists: false, bodies: [], unknown: undefined, seq: 0, trimPoint: 0 })

class World {
  readonly prng: Prng
  readonly clock = testClock({ now: 1_000_000 })
  readonly engines: Engine[] = []
  /** The probability that a call of the storage fails. */
  failureRate = 0
  readonly #historyListeners: (() => void)[] = []

  constructor(seed: number) {
    this.prng = new Prng(seed)
  }

  /** Opens engines whose caches are so small that most streams are evicted before their next use. */
  async open(engines: number): Promise<void> {
    const storage = this.#storage(engines > 1)
    const limits = { cachedStreams: this.prng.pick([1, 2, 10, 11, 15, 20, 30, 40]) }
    while (this.engines.length < engines) {
      this.engines.push(await open({ storage, clock: this.clock, limits }))
    }
    await this.engines[0]!.ensureBasin('basin')
  }

  /** Checks the outcome of a call that succeeds unless the storage failed. */
  assertFailed(outcome: string): void {
    expect(outcome).toBe('storage')
    expect(this.failureRate).toBeGreaterThan(0)
  }

  changeHistory(): void {
    for (const changed of this.#historyListeners) changed()
  }

  #storage(shared: boolean): Storage {
    const mayFail = async (nothingWritten: boolean) => {
      for (let turns = this.prng.below(6); turns > 0; turns--) await undefined
      if (this.prng.chance(this.failureRate)) throw new StorageFailure('io', 'injected', { nothingWritten })
    }
    const storage = wrapped(memory(), { shared }, (session) => ({
      get: (...args) => mayFail(true).then(() => session.get(...args)),
      head: (...args) => mayFail(true).then(() => session.head(...args)),
      append: (request) => session.append(request).then(() => mayFail(false)),
    }))
    return {
      ...storage,
      open: (context) => {
        if (context.onHistoryChanged !== undefined) this.#historyListeners.push(context.onHistoryChanged)
        return storage.open(context)
      },
    }
  }
}

/** An operation on a stream of a random engine. */
interface Use {
  readonly world: World
  readonly basin: Basin
  readonly stream: Stream
  readonly model: Model
  readonly body: string
}

/** A trim appends a command, whose body is the trim point. */
function trimBodyOf(trimPoint: number): string {
  const body = new DataView(new ArrayBuffer(8))
  body.setBigUint64(0, BigInt(trimPoint))
  return new TextDecoder().decode(body)
}

/** Undefined if the storage failed. */
async function tailOf(world: World, stream: Stream): Promise<number | undefined> {
  try {
    return (await stream.checkTail()).seqNum
  } catch (error) {
    world.assertFailed(codeOf(error))
    return undefined
  }
}

/** Operations that may fail. The step after a failed append reads the tail to learn if it was stored. */
const WHILE_FAILING = {
  async append({ world, stream, model, body }: Use) {
    const outcome = await outcomeOf(stream.append(body, { matchSeqNum: model.bodies.length }))
    if (outcome === 'ok') model.bodies.push(body)
    else {
      world.assertFailed(outcome)
      model.unknown = body
    }
  },

  async tail({ world, stream, model }: Use) {
    const seqNum = await tailOf(world, stream)
    if (seqNum !== undefined) expect(seqNum).toBe(model.bodies.length)
  },
}

const WITHOUT_FAILURES = {
  ...WHILE_FAILING,

  async mismatch({ stream, model }: Use) {
    const wrong = stream.append('wrong', { matchSeqNum: model.bodies.length + 1 })
    expect(await outcomeOf(wrong)).toBe('seq_num_mismatch')
  },

  async concurrentAppends({ stream, model, body }: Use) {
    const { length } = model.bodies
    const bodies = [body, `${body}+`]
    await Promise.all(bodies.map((each, i) => stream.append(each, { matchSeqNum: length + i })))
    model.bodies.push(...bodies)
  },

  async retryByProducer({ stream, model, body }: Use) {
    const producer = { id: 'p', epoch: 0, seq: model.seq++ }
    await stream.append(body, { producer })
    model.bodies.push(body)
    const { end, duplicate } = await stream.append(body, { producer })
    expect({ end: end.seqNum, duplicate }).toEqual({ end: model.bodies.length, duplicate: true })
  },

  async read({ stream, model }: Use) {
    const { bodies, trimPoint } = model
    // A trim takes effect after its grace period.
    const read = await readAll(stream)
    expect(read).toEqual(bodies.slice(-read.length))
    expect(read.length).toBeGreaterThanOrEqual(bodies.length - trimPoint)
  },

  async trim({ stream, model }: Use) {
    if (model.bodies.length < 2) return
    model.trimPoint = model.bodies.length - 1
    await stream.trim(model.trimPoint)
    model.bodies.push(trimBodyOf(model.trimPoint))
  },

  async fence({ world, stream, model }: Use) {
    const token = world.prng.pick(['', 'a'])
    await stream.fence(token)
    await stream.fence('', { fencingToken: token })
    // The body of a command is its argument.
    model.bodies.push(token, '')
  },

  async reconfigure({ world, stream }: Use) {
    await stream.reconfigure({ timestamping: { mode: world.prng.pick(['arrival', 'client-prefer']) } })
  },

  async delete({ stream, model }: Use) {
    await stream.delete()
    Object.assign(model, newModel())
  },

  async historyChanged({ world }: Use) {
    if (world.prng.chance(0.1)) world.changeHistory()
  },
}

async function step(use: Use): Promise<void> {
  const { world, basin, stream, model } = use
  if (!model.exists) {
    const outcome = await outcomeOf(basin.ensureStream(stream.name))
    if (outcome === 'ok') model.exists = true
    else world.assertFailed(outcome)
    return
  }
  if (model.unknown !== undefined) {
    const tail = await tailOf(world, stream)
    if (tail === undefined) return
    expect(tail - model.bodies.length).toBeOneOf([0, 1])
    if (tail > model.bodies.length) model.bodies.push(model.unknown)
    model.unknown = undefined
  }
  const operations = Object.values(world.failureRate > 0 ? WHILE_FAILING : WITHOUT_FAILURES)
  await world.prng.pick([WHILE_FAILING.append, ...operations])(use)
}

const cases = Array.from({ length: SEEDS }, (_, i) => [
  { seed: i + 1, engines: 1 },
  { seed: i + 1, engines: 2 },
]).flat()

it.each(cases)(
  'streams match their models after evictions: seed $seed, engines $engines',
  { tags: ['slow'] },
  async (options) => {
    const world = new World(options.seed)
    await world.open(options.engines)
    const { prng } = world
    const models = Array.from({ length: prng.pick([8, 20, 45]) }, newModel)
    let steps = 0
    /** Runs random operations on each of `users` streams in turn, beside the other users. */
    const run = async (user: number, users: number): Promise<void> => {
      for (let i = 0; i < STEPS; i++) {
        const number = prng.below(Math.floor(models.length / users)) * users + user
        const basin = prng.pick(world.engines).basin('basin')
        const stream = basin.stream(`streams/${number}`)
        await step({ world, basin, stream, model: models[number]!, body: `${steps++}` })
      }
    }
    for (const failureRate of [0, prng.pick([0.02, 0.1, 0.3]), 0]) {
      world.failureRate = failureRate
      const users = prng.pick([1, 2, 4])
      await Promise.all(Array.from({ length: users }, (_, user) => run(user, users)))
    }
    for (const engine of world.engines) {
      for (const [number, model] of models.entries()) {
        const basin = engine.basin('basin')
        const use = { world, basin, stream: basin.stream(`streams/${number}`), model, body: 'last' }
        if (model.unknown !== undefined || !model.exists) await step(use)
        await WITHOUT_FAILURES.read(use)
        await WITHOUT_FAILURES.tail(use)
      }
    }
    for (const engine of world.engines) await engine.close()
  },
)

import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Basin, type Engine, open, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { outcomeOf, readAll, testClock, wrapped } from '../../support/index.ts'
import { byRun } from '../../support/run-size.ts'

const SEEDS = byRun({ quick: 4, full: 15 })
const STEPS = 250

/** What a stream must have. */
interface Model {
  exists: boolean
  readonly bodies: string[]
  /** The body of an append whose outcome is not known. */
  unknown: string | undefined
  /** The next number of its producer. */
  seq: number
  trimPoint: number
}

const absent = (): Model => ({ exists: false, bodies: [], unknown: undefined, seq: 0, trimPoint: 0 })

class World {
  readonly prng: Prng
  readonly clock = testClock({ now: 1_000_000 })
  readonly engines: Engine[] = []
  /** The probability that a call of the storage fails. */
  failureRate = 0
  readonly #historyChanged: (() => void)[] = []

  constructor(seed: number) {
    this.prng = new Prng(seed)
  }

  /** Each engine keeps so few objects that most streams are evicted before their next use. */
  async open(engines: number): Promise<void> {
    const storage = this.#storage(engines > 1)
    const limits = { cachedStreams: this.prng.pick([1, 2, 10, 11, 15, 20, 30, 40]) }
    while (this.engines.length < engines) {
      this.engines.push(await open({ storage, clock: this.clock, limits }))
    }
    await this.engines[0]!.ensureBasin('basin')
  }

  changeHistory(): void {
    for (const changed of this.#historyChanged) changed()
  }

  #storage(shared: boolean): Storage {
    const mayFail = async (nothingWritten: boolean) => {
      for (let turns = this.prng.below(6); turns > 0; turns--) await undefined
      if (this.prng.chance(this.failureRate)) throw new StorageFailure('io', 'injected', { nothingWritten })
    }
    const storage = wrapped(memory(), { shared }, (session) => ({
      allocate: undefined as never,
      get: (...args) => mayFail(true).then(() => session.get(...args)),
      head: (...args) => mayFail(true).then(() => session.head(...args)),
      append: (request) => session.append(request).then(() => mayFail(false)),
    }))
    return {
      ...storage,
      open: (context) => {
        if (context.onHistoryChanged !== undefined) this.#historyChanged.push(context.onHistoryChanged)
        return storage.open(context)
      },
    }
  }
}

/** A stream with its model, and the engine that uses it this time. */
interface Use {
  readonly world: World
  readonly basin: Basin
  readonly stream: Stream
  readonly model: Model
  readonly body: string
}

/** Each checks what it finds. Appends may fail; what follows them finds out whether they are stored. */
const WHILE_FAILING = {
  async append({ stream, model, body }: Use) {
    const outcome = await outcomeOf(stream.append(body, { matchSeqNum: model.bodies.length }))
    if (outcome === 'ok') model.bodies.push(body)
    else {
      expect(outcome).toBe('storage')
      model.unknown = body
    }
  },

  async tail({ stream, model }: Use) {
    const tail = await stream.checkTail().catch((error) => outcomeOf(Promise.reject(error)))
    if (tail !== 'storage') expect(tail).toMatchObject({ seqNum: model.bodies.length })
  },
}

const WITHOUT_FAILURES = {
  ...WHILE_FAILING,

  async refused({ stream, model }: Use) {
    const wrong = stream.append('wrong', { matchSeqNum: model.bodies.length + 1 })
    expect(await outcomeOf(wrong)).toBe('seq_num_mismatch')
  },

  async twoAtOnce({ stream, model, body }: Use) {
    const { length } = model.bodies
    const bodies = [body, `${body}+`]
    await Promise.all(bodies.map((each, i) => stream.append(each, { matchSeqNum: length + i })))
    model.bodies.push(...bodies)
  },

  async twiceByProducer({ stream, model, body }: Use) {
    const producer = { id: 'p', epoch: 0, seq: model.seq++ }
    await stream.append(body, { producer })
    model.bodies.push(body)
    const { end, duplicate } = await stream.append(body, { producer })
    expect({ end: end.seqNum, duplicate }).toEqual({ end: model.bodies.length, duplicate: true })
  },

  async read({ stream, model }: Use) {
    const { bodies, trimPoint } = model
    if (trimPoint === 0) expect(await readAll(stream)).toEqual(bodies)
  },

  async trim({ stream, model }: Use) {
    if (model.bodies.length < 2) return
    model.trimPoint = model.bodies.length - 1
    await stream.trim(model.trimPoint)
    model.bodies.push('trim')
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
    Object.assign(model, absent())
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
    else expect(outcome).toBe('storage')
    return
  }
  if (model.unknown !== undefined) {
    const tail = await stream.checkTail().catch(() => undefined)
    if (tail === undefined) return
    expect(tail.seqNum - model.bodies.length).toBeOneOf([0, 1])
    if (tail.seqNum > model.bodies.length) model.bodies.push(model.unknown)
    model.unknown = undefined
  }
  const operations = Object.values(world.failureRate > 0 ? WHILE_FAILING : WITHOUT_FAILURES)
  await world.prng.pick([WHILE_FAILING.append, ...operations])(use)
}

const cases = Array.from({ length: SEEDS }, (_, i) => [
  { seed: i + 1, engines: 1 },
  { seed: i + 1, engines: 2 },
]).flat()

it.each(cases)('evicted streams are as they were left: seed $seed, engines $engines', async (options) => {
  const world = new World(options.seed)
  await world.open(options.engines)
  const { prng } = world
  const models = Array.from({ length: prng.pick([8, 20, 45]) }, absent)
  let steps = 0
  /** Uses a part of the streams, one at a time, beside other users. */
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
  for (const engine of world.engines) await engine.close()
})

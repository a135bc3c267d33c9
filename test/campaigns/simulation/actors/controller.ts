import type { StreamConfig } from '../../../../src/model/config.ts'
import { Violation } from '../../harness/violation.ts'
import type { Moment, StreamHistory } from '../../model/stream-history.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { drawConfig } from '../settings.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Actor } from './actor.ts'

const KINDS = ['list', 'config', 'reconfigure', 'ensure', 'create'] as const

/** Creates, reconfigures, lists and deletes streams, one operation at a time. */
export class Controller extends Actor {
  protected readonly inFlightMax = 1

  protected begin(engine: SimulatedEngine): void {
    const { prng, settings, observer } = this.world
    if (prng.chance(0.5)) return
    const history = observer.history(this.world.pickStream())
    if (settings.deletes && prng.chance(0.25)) this.#delete(engine, history)
    else this.#configure(prng.pick(KINDS), engine, history)
  }

  #configure(event: (typeof KINDS)[number], engine: SimulatedEngine, history: StreamHistory): void {
    const { name } = history
    const basin = engine.hw.basin(this.world.basin)
    const config = drawConfig(this.world.prng)
    const since = { ...history.observed }
    const called = { engine, history, event }
    const observe = (
      kind: 'config' | 'records',
      expected: string,
      contradiction: (moment: Moment) => string | undefined,
    ) =>
      history.observe(
        kind,
        since[kind],
        [`${event} of \`${name}\`: ${expected}`, 'it resolved'],
        contradiction,
      )
    const expectConfig = (found: StreamConfig) =>
      observe('config', `the configuration is ${JSON.stringify(found)}`, (moment) =>
        JSON.stringify(moment.config) === JSON.stringify(found) ? undefined : JSON.stringify(moment.config),
      )
    const expectStream = ({ result }: { readonly result: string }) =>
      result === 'created'
        ? observe('records', 'it is new', (moment) => {
            const before = history.moments[moment.version - 1]
            return moment.log !== undefined && before?.log !== moment.log
              ? undefined
              : 'no stream was created'
          })
        : observe('config', 'it is there', ({ log }) =>
            log === undefined ? 'there is no stream' : undefined,
          )
    if (event === 'list') this.#list(engine, history)
    else if (event === 'config')
      this.call({ ...called, promise: basin.stream(name).config(), done: expectConfig })
    else if (event === 'reconfigure')
      this.call({ ...called, promise: basin.stream(name).reconfigure(config), done: expectConfig })
    else if (event === 'ensure')
      this.call({ ...called, promise: basin.ensureStream(name, config), done: expectStream })
    else this.call({ ...called, promise: basin.createStream(name, config), done: expectStream })
  }

  #delete(engine: SimulatedEngine, history: StreamHistory): void {
    const since = history.observed.records
    const deletion = {}
    history.deletions.add(deletion)
    this.call({
      engine,
      history,
      event: 'delete',
      promise: engine.hw.basin(this.world.basin).stream(history.name).delete(),
      done: () => {
        history.deletions.delete(deletion)
        const texts = [`\`${history.name}\` does not exist after its deletion`, 'it resolved'] as const
        history.observe('records', since, texts, ({ log, version }) => {
          const before = history.moments.slice(since, version).map((moment) => moment.log)
          return before.some((earlier) => earlier !== undefined && earlier !== log) ? undefined : 'it exists'
        })
      },
      failed: (error, circumstances) => {
        if (!checkFailure(error, circumstances).mayHaveEffects) history.deletions.delete(deletion)
      },
    })
  }

  #list(engine: SimulatedEngine, any: StreamHistory): void {
    const { histories } = this.world.observer
    const since = new Map([...histories.values()].map((history) => [history, history.observed.config]))
    this.call({
      engine,
      history: any,
      event: 'list',
      promise: engine.hw.basin(this.world.basin).listStreams(),
      done: ({ items }) => {
        // Names that are reserved for forks are listed too.
        const names = items.filter(({ deletedAt }) => deletedAt === null).map(({ name }) => name)
        for (const [{ name, moments }, version] of since) {
          const isListed = names.includes(name)
          if (moments.slice(version).some(({ log }) => (log !== undefined) === isListed)) continue
          throw new Violation(`\`${name}\` is ${isListed ? 'not ' : ''}listed`, names.join())
        }
      },
    })
  }
}

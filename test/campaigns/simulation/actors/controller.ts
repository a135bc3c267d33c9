import type { HeadwaterError } from '../../../../src/index.ts'
import type { StreamConfig } from '../../../../src/model/config.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { drawConfig } from '../settings.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { Moment, StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'

/** Creates, reconfigures, lists and deletes streams, one operation at a time. */
export class Controller implements Actor {
  readonly name: string
  readonly #world: World
  #isBusy = false
  #isFinished = false

  constructor(name: string, world: World) {
    this.name = name
    this.#world = world
  }

  get isIdle(): boolean {
    return !this.#isBusy
  }

  act(): void {
    const { scheduler, open, settings, observer } = this.#world
    if (this.#isFinished || this.#isBusy || open.length === 0 || scheduler.chance(0.5)) return
    const engine = scheduler.pick(open)
    const history = observer.history(this.#world.pickStream())
    const kinds = ['list', 'config', 'reconfigure', 'ensure', 'create'] as const
    const kind = settings.deletes && scheduler.chance(0.25) ? 'delete' : scheduler.pick(kinds)
    if (kind === 'list') this.#list(engine)
    else if (kind === 'delete') this.#delete(engine, history)
    else this.#configure(kind, engine, history)
  }

  finish(): void {
    this.#isFinished = true
  }

  #configure(
    kind: 'config' | 'reconfigure' | 'ensure' | 'create',
    engine: SimulatedEngine,
    history: StreamHistory,
  ): void {
    const { scheduler } = this.#world
    const { name } = history
    const basin = engine.hw.basin(this.#world.basin)
    const config = drawConfig(scheduler)
    const since = { ...history.observed }
    const expectObserved = (
      expected: string,
      contradiction: (moment: Moment) => string | undefined,
      kindOfState: 'records' | 'config' = 'config',
    ) => {
      history.observe(
        kindOfState,
        since[kindOfState],
        `${kind} of \`${name}\`: ${expected}`,
        'it resolved',
        contradiction,
      )
    }
    const exists = ({ log }: Moment) => (log === undefined ? 'there is no stream' : undefined)
    const expectConfig = (found: StreamConfig) =>
      expectObserved(`the configuration is ${JSON.stringify(found)}`, (moment) =>
        JSON.stringify(moment.config) === JSON.stringify(found) ? undefined : JSON.stringify(moment.config),
      )
    const isNew = (moment: Moment) => {
      const before = history.moments[moment.version - 1]
      return moment.log !== undefined && before?.log !== moment.log ? undefined : 'no stream was created'
    }
    const created = (result: string) =>
      result === 'created' ? expectObserved(result, isNew, 'records') : expectObserved(result, exists)
    if (kind === 'config') this.#call(kind, engine, history, basin.stream(name).storedConfig(), expectConfig)
    else if (kind === 'reconfigure')
      this.#call(kind, engine, history, basin.stream(name).reconfigureStored(config), expectConfig)
    else if (kind === 'ensure') {
      this.#call(kind, engine, history, basin.ensureStream(name, config), ({ result }) => created(result))
    } else
      this.#call(kind, engine, history, basin.createStream(name, config), ({ result }) => created(result))
  }

  #delete(engine: SimulatedEngine, history: StreamHistory): void {
    const since = history.observed.records
    const deletion = {}
    history.deletions.add(deletion)
    const deleted = () => {
      history.deletions.delete(deletion)
      history.observe(
        'records',
        since,
        `\`${history.name}\` does not exist after its deletion`,
        'it resolved',
        ({ log, version }) => {
          const before = history.moments.slice(since, version).map((moment) => moment.log)
          return before.some((earlier) => earlier !== undefined && earlier !== log) ? undefined : 'it exists'
        },
      )
    }
    const failed = (mayHaveEffects: boolean) => {
      if (!mayHaveEffects) history.deletions.delete(deletion)
    }
    const basin = engine.hw.basin(this.#world.basin)
    this.#call('delete', engine, history, basin.stream(history.name).delete(), deleted, failed)
  }

  #list(engine: SimulatedEngine): void {
    const { histories } = this.#world.observer
    const since = new Map([...histories.values()].map((history) => [history, history.observed.config]))
    const [first] = histories.values()
    const list = engine.hw.basin(this.#world.basin).listStreams()
    this.#call('list', engine, first!, list, ({ items }) => {
      // Names that are reserved for forks are listed too.
      const names = items.filter(({ deletedAt }) => deletedAt === null).map(({ name }) => name)
      for (const [history, version] of since) {
        const isListed = names.includes(history.name)
        const logs = history.moments.slice(version).map(({ log }) => log !== undefined)
        if (logs.includes(isListed)) continue
        throw new Violation(`\`${history.name}\` is ${isListed ? 'not ' : ''}listed`, names.join())
      }
    })
  }

  #call<Result>(
    kind: string,
    engine: SimulatedEngine,
    history: StreamHistory,
    call: Promise<Result>,
    check: (result: Result) => void,
    onFailure: (mayHaveEffects: boolean) => void = () => {},
  ): void {
    const { history: lines, mayFail } = this.#world
    const since = history.observed.records
    this.#isBusy = true
    lines.add(this.name, kind, { engine: engine.name, stream: history.name })
    const settled = (event: string, details?: Record<string, unknown>) => {
      this.#isBusy = false
      lines.add(this.name, event, details)
    }
    engine.call(call, {
      done: (result) => {
        settled('done')
        check(result)
      },
      failed: (error) => {
        settled('failed', { error: (error as HeadwaterError).code })
        const { mayHaveEffects } = checkFailure(error, {
          history,
          since,
          mayFail,
          isClosing: !engine.isOpen,
        })
        onFailure(mayHaveEffects)
      },
      lost: () => {
        settled('lost')
        onFailure(true)
      },
    })
  }
}

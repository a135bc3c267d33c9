import { createHash } from 'node:crypto'
import type { FailedAppend } from '../../../adapters/sync/index.ts'
import { type Played, type PlayOptions, type Scenario, Scheduler } from '../harness/scheduler.ts'
import type { SeedCampaign } from '../harness/seeds.ts'
import { Violation } from '../harness/violation.ts'
import { textOf, textOfRecord } from '../model/stream-history.ts'
import { checkAppends, checkCopy, checkServer, checkShown, isCommand } from './checks.ts'
import { Device, type Sabotage, type Tab } from './device.ts'
import { HEALTHY } from './network.ts'
import { SimulatedServer } from './server.ts'
import { type DeviceSettings, settingsOf } from './settings.ts'

export const DEVICES: SeedCampaign = {
  name: 'devices',
  steps: 60,
  regressions: [1010, 1038, 2077, 3053, 5149, 71121],
  play,
}

/** How long devices may take to agree once everything works, in milliseconds. */
const CONVERGENCE_MS = 3_600_000

/** The delay of storages that do not keep up with the records that arrive in the end, in milliseconds. */
const SLOW_MS = 300
/** How many these records are. */
const FAST_APPENDS = 30

/** How many requests all devices may send for each step: about three times as many as any seed needs. */
const STEP_REQUESTS_MAX = 100

/** Runs devices, tabs and a server from a seed, then lets them converge and checks every promise. */
export async function play(options: PlayOptions, sabotage: Sabotage = {}): Promise<Played> {
  const settings = settingsOf(options.seed)
  const scheduler = new Scheduler(options)
  return scheduler.play(new Devices(scheduler, options, settings, sabotage), options, settings)
}

class Devices implements Scenario {
  readonly #scheduler: Scheduler
  readonly #settings: DeviceSettings
  readonly #server: SimulatedServer
  readonly #devices: readonly Device[]
  readonly #requestsMax: number
  #requests = 0
  /** The texts of records that the app discarded because their outcome cannot be known. */
  readonly #parked = new Set<string>()
  readonly #states = new Map<string, string>()
  /** The time from which on no request arrives late. */
  #quietAt = Number.POSITIVE_INFINITY

  constructor(scheduler: Scheduler, { steps }: PlayOptions, settings: DeviceSettings, sabotage: Sabotage) {
    this.#scheduler = scheduler
    this.#settings = settings
    this.#requestsMax = steps * STEP_REQUESTS_MAX
    const server = new SimulatedServer(scheduler, settings, sabotage.storage ?? ((storage) => storage))
    this.#server = server
    const parked = this.#parked
    const admits = () => ++this.#requests <= this.#requestsMax
    const world = { scheduler, server, settings, sabotage, parked, admits }
    this.#devices = Array.from({ length: settings.devices }, (_, index) => new Device(`d${index + 1}`, world))
  }

  async begin(): Promise<void> {
    await this.#server.start()
    for (const device of this.#devices) {
      device.network.rates = this.#settings.rates
      await device.openTab()
    }
  }

  async step(): Promise<void> {
    const { prng, time } = this.#scheduler
    const device = prng.pick(this.#devices)
    const tab = device.tabs.length === 0 ? undefined : prng.pick(device.tabs)
    await this.#scheduler.choose([
      [0.45, () => this.#append(tab)],
      [0.1, () => this.#connect(device)],
      [0.05, () => this.#note(device.name, 'loses its connections', () => device.network.reset())],
      [0.08, () => this.#changeTabs(device, tab)],
      [0.1, () => this.#changeServer()],
      [0.04, () => this.#changeClock(device)],
      [0.08, () => this.#appendElsewhere()],
      [0.05, () => this.#changeStream()],
      [0.05, () => this.#sleep()],
    ])
    await time.advance(prng.pick([0, 1, 10, 100, 1_000, 20_000, 120_000]))
    await this.#resolveStopped()
    this.#checkTabs()
  }

  /** Ends all faults, and waits until every device has everything. */
  async end(): Promise<void> {
    const { time } = this.#scheduler
    this.#scheduler.note('network', 'everything works again')
    if (!this.#server.isRunning) await this.#server.start()
    this.#server.heal()
    if (this.#server.isMissing) await this.#server.create()
    for (const device of this.#devices) {
      device.network.rates = HEALTHY
      device.network.isConnected = true
      if (device.tabs.length === 0) await device.openTab()
      if (!this.#isSlow) for (const tab of device.tabs) tab.heal()
    }
    if (this.#isSlow) await this.#appendFast()
    this.#quietAt = time.now() + this.#settings.rates.lateMs + 1_000
    const end = time.now() + CONVERGENCE_MS
    do {
      if (time.now() >= end) throw new Violation('all devices converge', this.#describeTabs())
      await time.advance('20s')
      await this.#resolveStopped()
      this.#checkTabs()
    } while (!this.#hasConverged())
    await this.#checkEnd()
    for (const device of this.#devices) for (const tab of [...device.tabs]) await tab.close()
  }

  /** Ends everything, whatever happened. Another run in this process is not affected. */
  async dispose(): Promise<void> {
    for (const device of this.#devices) await device.crash()
    await this.#server.crash()
  }

  #note<Result>(actor: string, event: string, act: () => Result): Result {
    this.#scheduler.note(actor, event)
    return act()
  }

  #append(tab: Tab | undefined): void {
    const count = this.#scheduler.prng.pick([1, 1, 1, 3])
    if (tab !== undefined) this.#note(tab.name, `appends ${count}`, () => tab.append(count))
  }

  #connect({ name, network }: Device): void {
    network.isConnected = !network.isConnected
    this.#scheduler.note(name, network.isConnected ? 'is connected' : 'is disconnected')
  }

  /** Lets time pass: more of it if no connection has heartbeats. */
  async #sleep(): Promise<void> {
    const { prng, time } = this.#scheduler
    const isQuiet = this.#devices.every(({ network }) => !network.isConnected)
    await time.advance(prng.pick(isQuiet ? ['2m', '10m'] : ['1m', '3m']))
  }

  #changeClock(device: Device): void {
    const { prng } = this.#scheduler
    const byMs = prng.pick([-86_400_000, -1_000, 1_000, 86_400_000])
    const isServer = prng.chance(0.2)
    this.#scheduler.note(isServer ? 'server' : device.name, 'clock is set', { byMs })
    if (isServer) this.#server.setClock(byMs)
    else device.setClock(byMs)
  }

  async #changeTabs(device: Device, tab: Tab | undefined): Promise<void> {
    const { prng } = this.#scheduler
    if (tab === undefined || (device.tabs.length < this.#settings.tabs && prng.chance(0.5)))
      await this.#note(device.name, 'opens a tab', () => device.openTab())
    else if (prng.chance(0.2)) await this.#note(device.name, 'crashes with all tabs', () => device.crash())
    else if (prng.chance(0.7)) await this.#note(tab.name, 'crashes', () => tab.crash())
    else await this.#note(tab.name, 'closes', () => tab.close())
  }

  async #changeServer(): Promise<void> {
    if (!this.#server.isRunning) {
      await this.#server.start()
      return
    }
    await this.#note('server', 'server crashes', () => this.#server.crash())
    for (const { network } of this.#devices) network.reset()
  }

  async #appendElsewhere(): Promise<void> {
    if (!this.#server.isRunning || this.#server.isMissing) return
    const text = `other ${this.#scheduler.lines.length}`
    await this.#note('other', 'other program appends', () => this.#server.append(text))
  }

  async #changeStream(): Promise<void> {
    const server = this.#server
    const { prng } = this.#scheduler
    if (!server.isRunning) return
    if (server.isMissing) await this.#note('server', 'stream is created again', () => server.create())
    else if (this.#settings.deletes && prng.chance(0.4)) {
      await this.#note('server', 'stream is deleted', () => server.delete())
      if (prng.chance(0.4)) await server.create()
    } else if (this.#settings.trims) await this.#note('server', 'stream is trimmed', () => server.trim())
  }

  /** Does what an app does about states that only it can resolve. */
  async #resolveStopped(): Promise<void> {
    for (const { tabs } of this.#devices) {
      const stopped = tabs.find(({ synced }) => synced.state.kind === 'stopped')
      if (stopped?.synced.state.kind === 'stopped')
        this.#note(stopped.name, `begins again: ${stopped.synced.state.reason}`, () => stopped.restart())
      for (const failed of tabs[0]?.synced.outbox.failed ?? []) await this.#resolve(failed, tabs[0]!)
    }
  }

  /** Discards what is in doubt. Retries it instead if it was not stored, and no request can arrive late. */
  async #resolve({ number, error, records }: FailedAppend, { name, synced }: Tab): Promise<void> {
    const { outbox } = synced
    if (!this.#server.hasRemoved && this.#settings.producers !== 'changing')
      throw new Violation('an append is in doubt only if records were removed', error.message)
    const texts = records.map(({ body }) => textOf(body))
    const isStored = texts.some((text) => this.#server.hasStored(text))
    const isRetried = number % 2 === 0 && !isStored && this.#scheduler.time.now() >= this.#quietAt
    if (!isRetried) for (const text of texts) this.#parked.add(text)
    this.#scheduler.note(name, isRetried ? 'retries' : 'discards', { number, code: error.code })
    const work = isRetried ? outbox.retry(number) : outbox.discard(number)
    // It may have been found meanwhile.
    const isResolved = (failure: unknown) => {
      if (outbox.failed.some((other) => other.number === number)) throw failure
    }
    await this.#scheduler.whileAdvancing(work.catch(isResolved))
  }

  #checkTabs(): void {
    if (this.#requests > this.#requestsMax)
      throw new Violation('devices pause between requests', `more than ${this.#requestsMax} requests`)
    const { lives } = this.#server
    checkServer(lives)
    for (const device of this.#devices) {
      for (const tab of device.tabs) {
        const { name, view, fold, synced } = tab
        for (const failure of [tab.failure, fold.failure]) if (failure !== undefined) throw failure
        view.compare()
        fold.checkConfirmed(lives, this.#startsLate)
        this.#reopen(tab)
        const shown = `${view.view?.confirmedLength}+${view.view?.pending.length}`
        const state = JSON.stringify({ state: synced.state.kind, shown, fold: fold.position })
        if (this.#states.get(name) !== state) this.#scheduler.note(name, synced.state.kind, { shown })
        this.#states.set(name, state)
      }
      // Storages without delays have settled, and so has everything that reads from them.
      if (this.#settings.storageDelayMs > 0) continue
      checkShown(device, { lives, parked: this.#parked, startsLate: this.#startsLate })
    }
  }

  /** Whether devices are slower than the records that arrive in the end. */
  get #isSlow(): boolean {
    return this.#settings.storageDelayMs >= SLOW_MS
  }

  /** Appends records faster than slow devices store them, for a while. */
  async #appendFast(): Promise<void> {
    const { prng, time } = this.#scheduler
    this.#scheduler.note('other', 'other program appends all the time')
    for (let index = 0; index < FAST_APPENDS; index++) {
      await this.#server.append(`fast ${index}`)
      await time.advance(prng.below(SLOW_MS))
    }
    this.#checkTabs()
  }

  /** Whether copies may begin in the middle of the stream though nothing was trimmed. */
  get #startsLate(): boolean {
    return this.#settings.tailOffset !== undefined
  }

  #reopen({ name, fold }: Tab): void {
    const { trimmedTo } = fold
    if (trimmedTo !== undefined) {
      this.#scheduler.note(name, 'fold misses records', { trimmedTo })
      if (!this.#startsLate && !this.#server.lives.some(({ trimPoint }) => trimPoint >= trimmedTo))
        throw new Violation(`the fold of ${name} misses trimmed records only`, `none before ${trimmedTo}`)
    }
    fold.reopen()
  }

  #describeTabs(): string {
    const tabs = this.#devices.flatMap((device) => device.tabs)
    const texts = tabs.map(({ name, synced, view, fold }) => {
      const records = `${view.view?.pending.length} pending, ${view.view?.length} records, fold at ${fold.position}`
      return `${name}: ${JSON.stringify([synced.state, synced.outbox.state])}, ${records}`
    })
    return texts.join('\n')
  }

  #hasConverged(): boolean {
    const { records } = this.#server.life
    const last = records.findLast(({ headers }) => !isCommand(headers))?.seqNum
    const tabs = this.#devices.flatMap((device) => device.tabs)
    return tabs.every(({ view: { view }, synced, fold }) => {
      if (view === undefined || !view.isCaughtUp || view.pending.length > 0) return false
      const isShown = view.length === 0 || view.at(view.length - 1)?.seqNum === last
      return fold.position === records.length && synced.state.kind === 'live' && isShown
    })
  }

  async #checkEnd(): Promise<void> {
    const { life, lives } = this.#server
    checkAppends(this.#devices, lives, this.#parked)
    for (const { name, local, view, fold } of this.#devices.flatMap(({ tabs }) => tabs)) {
      const copy = await this.#scheduler.whileAdvancing(local.read({}, { as: 'bytes' }).toArray())
      checkCopy(name, copy, life)
      fold.checkConfirmed([life], this.#startsLate)
      view.compare()
      const shown = view.view!.toArray().map(({ seqNum }) => seqNum)
      const stored = copy.filter(({ headers }) => !isCommand(headers)).map(({ seqNum }) => seqNum)
      if (shown.join() !== stored.join())
        throw new Violation(
          `the view of ${name} has the records of its copy`,
          `${shown} instead of ${stored}`,
        )
    }
    // Two runs with equal histories have equal records.
    for (const { records } of lives) {
      const digest = createHash('sha256').update(records.map(textOfRecord).join('\n')).digest('hex')
      this.#scheduler.note('server', 'had', { records: records.length, digest: digest.slice(0, 16) })
    }
  }
}

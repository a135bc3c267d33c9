import { createHash } from 'node:crypto'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import { isCommandShaped } from '../../../src/model/command.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { FailedAppend } from '../../../src/sync/outbox-status.ts'
import { Violation } from '../simulation/violation.ts'
import { checkAppends, checkCopy, checkServer, checkShown, textOfRecord } from './checks.ts'
import { Device, type Tab } from './device.ts'
import type { FoldCheck } from './fold-check.ts'
import { HEALTHY } from './network.ts'
import type { Sabotage } from './sabotage.ts'
import { SimulatedServer } from './server.ts'
import { type DeviceSettings, settingsOf } from './settings.ts'
import { whileAdvancing } from './virtual-work.ts'

/** The outcome of a seed. */
export interface DevicesResult {
  readonly seed: number
  readonly steps: number
  readonly settings: DeviceSettings
  /** What happened, in order. */
  readonly lines: readonly string[]
  readonly violation: Violation | undefined
}

/** How long devices may take to agree once everything works, in milliseconds. */
const CONVERGENCE_MS = 3_600_000

/** How many requests all devices may send for each step: about three times as many as any seed needs. */
const STEP_REQUESTS_MAX = 100

export interface RunOptions {
  readonly seed: number
  readonly steps: number
  /** Receives each event as it happens. */
  readonly onEvent?: ((line: string) => void) | undefined
  /** What is broken. Nothing by default. */
  readonly sabotage?: Sabotage | undefined
  /** Ends the run between two steps, which rejects with its reason then. */
  readonly signal?: AbortSignal | undefined
}

/** Runs devices, tabs and a server from a seed, then lets them converge and checks every promise. */
export async function run(options: RunOptions): Promise<DevicesResult> {
  const { seed, steps, sabotage = {}, signal } = options
  const settings = { ...settingsOf(seed), ...sabotage.settings }
  const simulation = new DevicesSimulation(options, settings, sabotage)
  let violation: Violation | undefined
  try {
    await simulation.run(steps)
  } catch (error) {
    signal?.throwIfAborted()
    violation = error instanceof Violation ? error : new Violation('no unexpected error', stackOf(error))
  } finally {
    await simulation.end()
  }
  return { seed, steps, settings, lines: simulation.lines, violation }
}

class DevicesSimulation {
  readonly lines: string[] = []
  readonly #time: VirtualClock = virtualClock()
  readonly #prng: Prng
  readonly #settings: DeviceSettings
  readonly #server: SimulatedServer
  readonly #devices: Device[]
  readonly #onEvent: ((line: string) => void) | undefined
  readonly #signal: AbortSignal | undefined
  readonly #requestsMax: number
  #requests = 0
  /** Records that the app discarded because their outcome cannot be known. */
  readonly #parked = new Set<string>()
  readonly #states = new Map<string, string>()
  /** The time from which on no request arrives late. */
  #quietAt = Number.POSITIVE_INFINITY

  constructor({ seed, steps, onEvent, signal }: RunOptions, settings: DeviceSettings, sabotage: Sabotage) {
    this.#requestsMax = steps * STEP_REQUESTS_MAX
    this.#onEvent = onEvent
    this.#signal = signal
    this.#prng = new Prng(seed)
    this.#settings = settings
    this.#server = new SimulatedServer(this.#time, this.#prng, settings, sabotage)
    const note = (line: string) => this.#note(line)
    const admits = () => ++this.#requests <= this.#requestsMax
    const world = { time: this.#time, server: this.#server, settings, sabotage, note, admits }
    this.#devices = Array.from(
      { length: settings.devices },
      (_, index) => new Device(`d${index + 1}`, this.#prng, world),
    )
  }

  async run(steps: number): Promise<void> {
    await this.#server.start()
    for (const device of this.#devices) {
      device.network.rates = this.#settings.rates
      await device.openTab()
    }
    for (let step = 0; step < steps; step++) {
      await this.#step()
      await this.#time.advance(this.#prng.pick([0, 1, 10, 100, 1_000, 20_000, 120_000]))
      await this.#resolveStopped()
      this.#checkTabs()
    }
    await this.#converge()
    await this.#check()
    this.#noteRecords()
    for (const device of this.#devices) for (const tab of [...device.tabs]) await tab.close()
  }

  /** Ends everything, whatever happened. Another run in this process is not affected. */
  async end(): Promise<void> {
    for (const device of this.#devices) await device.crash()
    await this.#server.crash()
  }

  #note(line: string): void {
    const event = `${this.#time.now()} ${line}`
    this.lines.push(event)
    this.#onEvent?.(event)
  }

  async #step(): Promise<void> {
    const device = this.#prng.pick(this.#devices)
    const tab = device.tabs.length === 0 ? undefined : this.#prng.pick(device.tabs)
    const draw = this.#prng.next()
    if (draw < 0.45) {
      if (tab === undefined) return
      const count = this.#prng.pick([1, 1, 1, 3])
      this.#note(`${tab.name} appends ${count}`)
      tab.append(count)
    } else if (draw < 0.55) {
      device.network.isConnected = !device.network.isConnected
      this.#note(`${device.name} is ${device.network.isConnected ? 'connected' : 'disconnected'}`)
    } else if (draw < 0.6) {
      this.#note(`connections of ${device.name} are reset`)
      device.network.reset()
    } else if (draw < 0.68) {
      await this.#changeTabs(device, tab)
    } else if (draw < 0.78) {
      await this.#changeServer()
    } else if (draw < 0.82) {
      this.#changeClock(device)
    } else if (draw < 0.9) {
      if (!this.#server.isRunning || this.#server.isMissing) return
      this.#note('another program appends')
      await this.#server.append(`other ${this.lines.length}`)
    } else if (draw < 0.95) {
      await this.#changeStream()
    } else {
      await this.#sleep()
    }
  }

  /** Lets time pass: more of it if no connection has heartbeats. */
  async #sleep(): Promise<void> {
    const isQuiet = this.#devices.every(({ network }) => !network.isConnected)
    await this.#time.advance(this.#prng.pick(isQuiet ? ['5m', '20m'] : ['1m', '5m']))
  }

  #changeClock(device: Device): void {
    const byMs = this.#prng.pick([-86_400_000, -1_000, 1_000, 86_400_000])
    const isServer = this.#prng.chance(0.2)
    this.#note(`the clock of ${isServer ? 'the server' : device.name} is set by ${byMs} ms`)
    if (isServer) this.#server.setClock(byMs)
    else device.setClock(byMs)
  }

  async #changeTabs(device: Device, tab: Tab | undefined): Promise<void> {
    if (tab === undefined || (device.tabs.length < this.#settings.tabs && this.#prng.chance(0.5))) {
      if (this.#prng.chance(0.2)) {
        this.#note(`the app on ${device.name} is updated`)
        device.update()
      }
      this.#note(`${device.name} opens a tab`)
      await device.openTab()
    } else if (this.#prng.chance(0.2)) {
      this.#note(`${device.name} crashes with all of its tabs`)
      await device.crash()
    } else if (this.#prng.chance(0.7)) {
      this.#note(`${tab.name} crashes`)
      await tab.crash()
    } else {
      this.#note(`${tab.name} closes`)
      await tab.close()
    }
  }

  async #changeServer(): Promise<void> {
    if (this.#server.isRunning) {
      this.#note('the server crashes')
      await this.#server.crash()
      for (const { network } of this.#devices) network.reset()
    } else {
      this.#note('the server starts')
      await this.#server.start()
      const { ignoredPart } = this.#server
      if (ignoredPart > 0) this.#note(`the server ignores ${ignoredPart} of the headers of producers`)
    }
  }

  async #changeStream(): Promise<void> {
    if (!this.#server.isRunning) return
    if (this.#server.isMissing) {
      this.#note('the stream is created again')
      await this.#server.create()
    } else if (this.#settings.deletes && this.#prng.chance(0.4)) {
      this.#note('the stream is deleted')
      await this.#server.delete()
      if (this.#prng.chance(0.4)) await this.#server.create()
    } else if (this.#settings.trims) {
      this.#note('the stream is trimmed')
      await this.#server.trim()
    }
  }

  /** Does what an app does about states that only it can resolve. */
  async #resolveStopped(): Promise<void> {
    for (const { tabs, discarded } of this.#devices) {
      for (const tab of tabs) {
        const { state } = tab.synced
        if (state.kind !== 'stopped') continue
        this.#note(`${tab.name} begins its copy again: ${state.reason}`)
        tab.restart()
        break
      }
      const [tab] = tabs
      for (const failed of tab?.synced.outbox.failed ?? []) await this.#resolve(failed, tab!, discarded)
    }
  }

  /** Discards what is in doubt. Retries it instead if it was not stored, and no request can arrive late. */
  async #resolve(failed: FailedAppend, { name, synced }: Tab, discarded: Set<string>): Promise<void> {
    const { outbox } = synced
    const { number, error, records } = failed
    if (!this.#server.hasRemoved && this.#settings.producers !== 'changing') {
      throw new Violation('an append is in doubt only if records were removed', error.message)
    }
    const isStored = records.some(({ body }) => this.#server.hasStored(lossyTextOf(body)))
    const isRetried = number % 2 === 0 && !isStored && this.#time.now() >= this.#quietAt
    this.#note(`${name} ${isRetried ? 'retries' : 'discards'} ${number}: ${error.code}`)
    for (const { seqNum, body } of records) {
      if (!isRetried) this.#parked.add(lossyTextOf(body))
      // One that is appended again has another number.
      discarded.add(`${outbox.device}/${seqNum}`)
    }
    const work = isRetried ? outbox.retry(number) : outbox.discard(number)
    // It may have been found meanwhile.
    const isResolved = (error: unknown) => {
      if (outbox.failed.some((other) => other.number === number)) throw error
    }
    await whileAdvancing(this.#time, work.catch(isResolved))
  }

  #checkTabs(): void {
    this.#signal?.throwIfAborted()
    if (this.#requests > this.#requestsMax) {
      throw new Violation('devices pause between requests', `more than ${this.#requestsMax} requests`)
    }
    const { lives } = this.#server
    checkServer(lives)
    for (const device of this.#devices) {
      for (const { name, failure, view, folds, synced } of device.tabs) {
        throwFailure(`the view of ${name} does not fail`, failure)
        view.compare()
        for (const fold of folds) {
          throwFailure(`the fold ${fold.name} does not fail`, fold.failure)
          fold.checkConfirmed(lives, this.#startsLate)
          this.#reopen(fold)
        }
        const places = folds.map(({ fold }) => `${fold.position}`)
        const shown = `${view.view?.confirmedLength}+${view.view?.pending.length}`
        this.#noteState(name, `is ${synced.state.kind}, shows ${shown} and folds ${places}`)
      }
      // Storages without delays have settled, and so has everything that reads from them.
      if (this.#settings.storageDelayMs > 0) continue
      checkShown(device, { lives, parked: this.#parked, startsLate: this.#startsLate })
    }
  }

  /** Whether copies may begin in the middle of the stream though nothing was trimmed. */
  get #startsLate(): boolean {
    return this.#settings.tailOffset !== undefined
  }

  #reopen(fold: FoldCheck): void {
    const { trimmedTo } = fold
    if (trimmedTo !== undefined) {
      this.#note(`the fold ${fold.name} ends: records before ${trimmedTo} were trimmed`)
      if (!this.#startsLate && !this.#server.lives.some((life) => life.trimmedTo >= trimmedTo)) {
        throw new Violation(`the fold ${fold.name} misses trimmed records only`, `none before ${trimmedTo}`)
      }
    }
    fold.reopen()
  }

  #noteState(name: string, state: string): void {
    if (this.#states.get(name) === state) return
    this.#states.set(name, state)
    this.#note(`${name} ${state}`)
  }

  /** Ends all faults, and waits until every device has everything. */
  async #converge(): Promise<void> {
    this.#note('everything works again')
    if (!this.#server.isRunning) await this.#server.start()
    this.#server.heal()
    if (this.#server.isMissing) await this.#server.create()
    for (const device of this.#devices) {
      device.network.rates = HEALTHY
      device.network.isConnected = true
      if (device.tabs.length === 0) await device.openTab()
      for (const tab of device.tabs) tab.heal()
    }
    this.#quietAt = this.#time.now() + this.#settings.rates.lateMs
    const end = this.#time.now() + CONVERGENCE_MS
    while (this.#time.now() < end) {
      await this.#time.advance('20s')
      await this.#resolveStopped()
      this.#checkTabs()
      if (this.#hasConverged()) return
    }
    const states = this.#devices.flatMap(({ tabs }) =>
      tabs.map(({ name, synced, view, folds }) => {
        const waiting = view.view?.pending.length
        const places = folds.map(({ fold }) => fold.position)
        const records = `${waiting} pending, ${view.view?.length} records, folds at ${places}`
        const [copied, sent] = [synced.state, synced.outbox.state].map((state) => JSON.stringify(state))
        return `${name}: ${copied}, ${sent}, ${records}`
      }),
    )
    throw new Violation('all devices converge', states.join('\n'))
  }

  #hasConverged(): boolean {
    const { records } = this.#server.life
    const last = records.findLast(({ headers }) => !isCommandShaped(headers))?.seqNum
    return this.#devices.every(({ tabs }) =>
      tabs.every(({ view: { view }, synced, folds }) => {
        if (view === undefined || !view.isCaughtUp || view.pending.length > 0) return false
        if (folds.some(({ fold }) => fold.position !== records.length)) return false
        const shown = view.at(view.length - 1)?.seqNum
        return synced.state.kind === 'live' && (shown === last || view.length === 0)
      }),
    )
  }

  /** Notes a digest of everything that was ever on the server. */
  #noteRecords(): void {
    for (const { records } of this.#server.lives) {
      const hash = createHash('sha256')
      for (const record of records) hash.update(textOfRecord(record)).update('\n')
      this.#note(`the server had ${records.length} records: ${hash.digest('hex').slice(0, 16)}`)
    }
  }

  async #check(): Promise<void> {
    checkAppends(this.#devices, this.#server.lives, this.#parked)
    for (const { tabs } of this.#devices) {
      for (const { name, local, view, folds } of tabs) {
        const copy = await whileAdvancing(this.#time, local.read({}, { as: 'bytes' }).toArray())
        checkCopy(name, copy, this.#server.life)
        for (const fold of folds) {
          fold.checkConfirmed([this.#server.life], this.#startsLate)
          fold.checkCopy(copy, this.#server.life.records.length)
        }
        view.compare()
        const shown = view.view!.toArray().map(({ seqNum }) => seqNum)
        const stored = copy.filter(({ headers }) => !isCommandShaped(headers)).map(({ seqNum }) => seqNum)
        if (shown.join() !== stored.join()) {
          throw new Violation(
            `the view of ${name} has the records of its copy`,
            `${shown} instead of ${stored}`,
          )
        }
      }
    }
  }
}

function throwFailure(expected: string, failure: unknown): void {
  if (failure === undefined) return
  throw failure instanceof Violation ? failure : new Violation(expected, stackOf(failure))
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

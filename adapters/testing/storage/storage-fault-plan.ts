import { chanceOf } from '../faults/chance.ts'
import { FaultLog } from '../faults/fault-log.ts'
import { type FaultPoint, FaultPoints } from '../faults/fault-points.ts'
import { checkDelay, checkNames, checkProbabilities, delayMsOf, drawn } from '../faults/rates.ts'
import {
  type CallRates,
  type InjectedKind,
  STORAGE_OPERATIONS,
  type StorageFault,
  type StorageOperation,
  type StorageRates,
} from './storage-faults.ts'

type PlannedFault =
  | { readonly fault: 'failure'; readonly kind: InjectedKind; readonly after: boolean }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }
  | { readonly fault: 'torn read' }

/** What happens to one call. */
export interface Injection {
  readonly operation: StorageOperation
  readonly call: number
  /** How long it is held back, and how long its answer. */
  readonly holdMs: number
  readonly answerHoldMs: number
  readonly failure: { readonly kind: InjectedKind; readonly after: boolean } | undefined
  /** Of a torn read: how much of what comes behind the first block is given, from 0 up to, but without, 1. */
  readonly tornAt: number | undefined
}

/** What happens to one notification. */
export interface NotificationInjection {
  readonly call: number
  readonly dropped: boolean
  readonly duplicated: boolean
  readonly delayMs: number
}

/** Decides what happens to which call: what was planned for it, then chance. Counts the calls, and logs what it decided. */
export class StorageFaultPlan {
  readonly log = new FaultLog<StorageFault>()
  notifications = { dropped: false, duplicated: false, delayMs: 0 }
  readonly #seed: number
  readonly #points = new Map<StorageOperation, FaultPoints<readonly unknown[], PlannedFault>>()
  readonly #calls = new Map<StorageOperation | 'notification', number>()
  #rates: StorageRates = {}

  constructor(seed: number) {
    this.#seed = seed
  }

  get rates(): StorageRates {
    return this.#rates
  }

  set rates(rates: StorageRates) {
    checkNames('rates', rates, [...STORAGE_OPERATIONS, 'notification'])
    for (const [operation, given] of Object.entries(rates)) checkRates(operation, given)
    this.#rates = rates
  }

  add(operation: StorageOperation, fault: PlannedFault, point: FaultPoint<readonly unknown[]>): void {
    checkNames('the storage contract', { [operation]: true }, STORAGE_OPERATIONS)
    let points = this.#points.get(operation)
    if (points === undefined) {
      points = new FaultPoints()
      this.#points.set(operation, points)
    }
    points.add(fault, point)
  }

  heal(): void {
    this.#points.clear()
    this.#rates = {}
    this.notifications = { dropped: false, duplicated: false, delayMs: 0 }
  }

  injectionOf(operation: StorageOperation, args: readonly unknown[]): Injection {
    const call = this.#count(operation)
    const planned = this.#points.get(operation)?.meeting(...args) ?? []
    const faults = [...planned, ...this.#byChance(operation, call)]
    const delayMs = (isAfter: boolean) =>
      faults.reduce(
        (sum, one) => (one.fault === 'delay' && one.after === isAfter ? sum + one.delayMs : sum),
        0,
      )
    const failure = faults.find((one) => one.fault === 'failure')
    const tearsWholly = planned.some(({ fault }) => fault === 'torn read')
    const torn = tearsWholly ? 0 : this.#tornByChance(operation, call)
    const injection = {
      operation,
      call,
      holdMs: delayMs(false),
      answerHoldMs: delayMs(true),
      failure,
      tornAt: torn,
    }
    this.#note(injection)
    return injection
  }

  /** How many of its blocks a read gives. */
  keptOf({ tornAt, call }: Injection, blocks: number): number {
    if (tornAt === undefined || blocks < 2) return blocks
    const kept = 1 + Math.floor(tornAt * (blocks - 1))
    this.log.add({ fault: 'torn read', operation: 'read', call, blocks: kept })
    return kept
  }

  notificationInjection(): NotificationInjection {
    const operation = 'notification'
    const call = this.#count(operation)
    const { drop, duplicate, delay } = this.#rates.notification ?? {}
    const chance = chanceOf(this.#seed, operation, call)
    const dropped = chance.chance(drop ?? 0) || this.notifications.dropped
    const duplicated = !dropped && (chance.chance(duplicate ?? 0) || this.notifications.duplicated)
    const delayMs = dropped ? 0 : delayMsOf(delay, chance) + this.notifications.delayMs
    if (dropped) this.log.add({ fault: 'dropped', operation, call })
    if (duplicated) this.log.add({ fault: 'duplicated', operation, call })
    if (delayMs > 0) this.log.add({ fault: 'delay', operation, call, delayMs })
    return { call, dropped, duplicated, delayMs }
  }

  #count(operation: StorageOperation | 'notification'): number {
    const call = (this.#calls.get(operation) ?? 0) + 1
    this.#calls.set(operation, call)
    return call
  }

  #byChance(operation: StorageOperation, call: number): PlannedFault[] {
    const rates: CallRates | undefined = this.#rates[operation]
    if (rates === undefined) return []
    const chance = chanceOf(this.#seed, operation, call)
    const { before, after, kind = 'io', delay } = rates
    const faults: PlannedFault[] = []
    const failure = drawn(chance, { before, after })
    const isAnswer = chance.chance(0.5)
    const delayMs = delayMsOf(delay, chance)
    if (failure !== undefined) faults.push({ fault: 'failure', kind, after: failure === 'after' })
    if (delayMs > 0) faults.push({ fault: 'delay', delayMs, after: isAnswer })
    return faults
  }

  #tornByChance(operation: StorageOperation, call: number): number | undefined {
    const probability = operation === 'read' ? this.#rates.read?.torn : undefined
    if (probability === undefined) return undefined
    const chance = chanceOf(this.#seed, 'torn read', call)
    return chance.chance(probability) ? chance.next() : undefined
  }

  #note({ operation, call, holdMs, answerHoldMs, failure }: Injection): void {
    if (holdMs > 0) this.log.add({ fault: 'delay', operation, call, delayMs: holdMs, after: false })
    if (failure !== undefined) {
      const { kind, after } = failure
      this.log.add({ fault: 'failure', operation, call, kind, after })
    }
    if (answerHoldMs > 0) {
      this.log.add({ fault: 'delay', operation, call, delayMs: answerHoldMs, after: true })
    }
  }
}

const CALL_RATES = ['before', 'after', 'kind', 'delay']
const OTHER_RATES: Readonly<Record<string, readonly string[]>> = {
  read: [...CALL_RATES, 'torn'],
  notification: ['drop', 'duplicate', 'delay'],
}

function checkRates(operation: string, rates: StorageRates[keyof StorageRates] = {}): void {
  const name = `rates.${operation}`
  checkNames(name, rates, OTHER_RATES[operation] ?? CALL_RATES)
  const { before, after, torn, drop, duplicate, delay } = { ...rates } as Record<string, number> & CallRates
  checkProbabilities(name, { before, after })
  for (const one of [{ torn }, { drop }, { duplicate }]) checkProbabilities(name, one)
  checkDelay(name, delay)
}

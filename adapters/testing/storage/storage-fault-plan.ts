import {
  assertMembers,
  listOf,
  type Members,
  type MembersOf,
  unchecked,
  unknownMember,
} from '../../../src/model/validation.ts'
import { FaultLog, type FaultPoint, FaultPoints } from '../faults/planned-faults.ts'
import { chanceOf, checkDelay, checkProbabilities, delayMsOf, drawOne } from '../faults/random-faults.ts'
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

/** The faults of one call. */
export interface Injection {
  readonly operation: StorageOperation
  readonly call: number
  /** The delay of the call. */
  readonly holdMs: number
  /** The delay of its result. */
  readonly resultHoldMs: number
  readonly failure: { readonly kind: InjectedKind; readonly after: boolean } | undefined
  /** The fraction, in [0, 1), of the blocks after the first that a torn read returns. */
  readonly tornAt: number | undefined
}

/** The faults of one notification. */
export interface NotificationInjection {
  readonly call: number
  readonly dropped: boolean
  readonly duplicated: boolean
  readonly delayMs: number
}

/** Decides the faults of each call: the planned ones, then random ones. Counts calls and logs faults. */
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
    assertMembers(rates, STORAGE_RATES, 'rates', 'rates.')
    for (const [operation, given] of Object.entries(rates)) checkRates(operation, given)
    this.#rates = rates
  }

  add(operation: StorageOperation, fault: PlannedFault, point: FaultPoint<readonly unknown[]>): void {
    if (!STORAGE_OPERATIONS.includes(operation)) {
      throw unknownMember(operation, operation, STORAGE_RATES)
    }
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
    const planned = this.#points.get(operation)?.matching(...args) ?? []
    const faults = [...planned, ...this.#byChance(operation, call)]
    const delayMs = (isAfter: boolean) =>
      faults.reduce(
        (sum, fault) => (fault.fault === 'delay' && fault.after === isAfter ? sum + fault.delayMs : sum),
        0,
      )
    const failure = faults.find((injected) => injected.fault === 'failure')
    const isTorn = planned.some(({ fault }) => fault === 'torn read')
    const injection = {
      operation,
      call,
      holdMs: delayMs(false),
      resultHoldMs: delayMs(true),
      failure,
      tornAt: isTorn ? 0 : this.#tornByChance(operation, call),
    }
    this.#log(injection)
    return injection
  }

  /** Returns how many of its blocks a read returns. */
  blocksKept({ tornAt, call }: Injection, blocks: number): number {
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
    const failure = drawOne(chance, { before, after })
    const isDelayedAfter = chance.chance(0.5)
    const delayMs = delayMsOf(delay, chance)
    if (failure !== undefined) faults.push({ fault: 'failure', kind, after: failure === 'after' })
    if (delayMs > 0) faults.push({ fault: 'delay', delayMs, after: isDelayedAfter })
    return faults
  }

  #tornByChance(operation: StorageOperation, call: number): number | undefined {
    const probability = operation === 'read' ? this.#rates.read?.torn : undefined
    if (probability === undefined) return undefined
    const chance = chanceOf(this.#seed, 'torn read', call)
    return chance.chance(probability) ? chance.next() : undefined
  }

  #log({ operation, call, holdMs, resultHoldMs, failure }: Injection): void {
    if (holdMs > 0) this.log.add({ fault: 'delay', operation, call, delayMs: holdMs, after: false })
    if (failure !== undefined) {
      const { kind, after } = failure
      this.log.add({ fault: 'failure', operation, call, kind, after })
    }
    if (resultHoldMs > 0) {
      this.log.add({ fault: 'delay', operation, call, delayMs: resultHoldMs, after: true })
    }
  }
}

const delay = listOf(unchecked)
const CALL_RATES: MembersOf<CallRates> = { before: 'number', after: 'number', kind: 'string', delay }
const STORAGE_RATES: Members = {
  ...Object.fromEntries(STORAGE_OPERATIONS.map((operation) => [operation, CALL_RATES])),
  read: { ...CALL_RATES, torn: 'number' },
  notification: { drop: 'number', duplicate: 'number', delay },
}

function checkRates(operation: string, rates: StorageRates[keyof StorageRates] = {}): void {
  const name = `rates.${operation}`
  const { before, after, torn, drop, duplicate, delay } = { ...rates } as Record<string, number> & CallRates
  checkProbabilities(name, { before, after })
  for (const rate of [{ torn }, { drop }, { duplicate }]) checkProbabilities(name, rate)
  checkDelay(name, delay)
}

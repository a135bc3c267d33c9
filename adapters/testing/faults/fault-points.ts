/** Which calls a fault meets: all that come from now on, until `heal()`, unless this says which. */
export interface FaultPoint<Args extends readonly unknown[]> {
  /** Only one of the calls that come from now on: 1 is the next. With `when`, one of those that it holds for. */
  readonly nth?: number
  /** Only calls of which this holds; it is given what the call is given. */
  readonly when?: (...args: Args) => boolean
}

interface Planned<Args extends readonly unknown[], Fault> extends FaultPoint<Args> {
  readonly fault: Fault
  seen: number
}

/** Faults that were planned for calls of one kind. */
export class FaultPoints<Args extends readonly unknown[], Fault> {
  #planned: Planned<Args, Fault>[] = []

  /** Throws `RangeError` for an `nth` that is no whole number from 1 on. */
  add(fault: Fault, { nth, when }: FaultPoint<Args>): void {
    if (nth !== undefined && !(Number.isSafeInteger(nth) && nth >= 1)) {
      throw new RangeError(`nth must be a whole number from 1 on, not ${nth}`)
    }
    this.#planned.push({ fault, seen: 0, ...(nth && { nth }), ...(when && { when }) })
  }

  /** What meets this call, in the order in which it was planned. */
  meeting(...args: Args): Fault[] {
    const met: Fault[] = []
    this.#planned = this.#planned.filter((one) => {
      const { fault, nth, when } = one
      if (when?.(...args) === false) return true
      one.seen++
      if (nth === undefined || one.seen === nth) met.push(fault)
      return nth === undefined || one.seen < nth
    })
    return met
  }

  clear(): void {
    this.#planned = []
  }
}

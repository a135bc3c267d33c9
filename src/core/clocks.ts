/** What is known of a clock by which records are deleted, in milliseconds. Persisted: keep stable. */
export interface ConfirmedTime {
  /** The latest time that is certain to have been reached. */
  readonly at: number
  /** The time that the clock stepped to from there, until it is confirmed. */
  readonly stepAt: number | null
}

/** A larger advance is a step. Less than the smallest error of a wrong time zone. */
const STEP_MS_MIN = 900_000
/** How long a clock has to run on after a step. */
const CONFIRM_MS = 3_600_000

/**
 * Takes another look at the clock. A clock that steps forward may be wrong (a dead battery, a wrong time zone
 * at boot), or time has passed while nothing ran: the step is confirmed once the clock has stayed at or after
 * it for an hour without another step, and forgotten if it goes back before. Until then, nothing may be
 * deleted because of it. `seenAt` is the time of the look before by the same engine, undefined at its first.
 */
export function confirmTime(
  known: ConfirmedTime | undefined,
  now: number,
  seenAt: number | undefined,
): ConfirmedTime {
  if (known === undefined || now < known.at + STEP_MS_MIN) return { at: now, stepAt: null }
  const { at, stepAt } = known
  if (stepAt === null || now < stepAt) return { at, stepAt: now }
  // Another step is not the passing of an hour.
  if (seenAt !== undefined && now >= seenAt + STEP_MS_MIN) return { at, stepAt: now }
  if (now < stepAt + CONFIRM_MS) return known
  // This clock was beyond the step before: another engine's clock has stepped there.
  if (seenAt !== undefined && seenAt >= stepAt + CONFIRM_MS) return { at, stepAt: now }
  // Time has probably passed while nothing ran, since the first of two openings.
  if (seenAt === undefined) return confirmTime({ at: stepAt, stepAt: null }, now, seenAt)
  return { at: now, stepAt: null }
}

/** How far a clock is ahead of another one, in milliseconds. */
export interface ClockOffset {
  /** Negative if it is behind. */
  readonly offsetMs: number
  /** The true offset differs by at most this. */
  readonly errorMs: number
}

/** Both clocks show whole milliseconds. */
const RESOLUTION_MS = 1

/**
 * The offset of a clock that was asked at `sentAt` and answered by `receivedAt`, in the time of the own one.
 * The clock was read at some time between the two.
 */
export function measuredOffset(sentAt: number, receivedAt: number, time: number): ClockOffset {
  const halfMs = (receivedAt - sentAt) / 2
  return {
    offsetMs: Math.round(time - sentAt - halfMs),
    // The own clock was set back meanwhile.
    errorMs: halfMs < 0 ? Number.POSITIVE_INFINITY : halfMs + RESOLUTION_MS,
  }
}

/**
 * The offset after another measurement: a known one stays until a measurement contradicts it or is more
 * precise, so that slow answers do not make the time jump.
 */
export function refineOffset(known: ClockOffset, measured: ClockOffset): ClockOffset {
  const isConsistent = Math.abs(measured.offsetMs - known.offsetMs) <= measured.errorMs + known.errorMs
  return isConsistent && known.errorMs <= measured.errorMs ? known : measured
}

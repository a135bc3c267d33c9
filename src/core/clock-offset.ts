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

/** Whether the clocks differ by more than a limit, however imprecise the measurement. */
export function exceedsOffset({ offsetMs, errorMs }: ClockOffset, limitMs: number): boolean {
  return Math.abs(offsetMs) - errorMs > limitMs
}

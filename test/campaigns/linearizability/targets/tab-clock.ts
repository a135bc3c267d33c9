import type { RecordedOperation } from '../operations.ts'

/** Bounds of the offset from the clock of a tab to that of the test, in milliseconds. */
interface Offset {
  readonly least: number
  readonly most: number
}

/** Browsers round times to this many milliseconds, up or down, if pages are not isolated. */
const ROUNDED_MS = 0.1

const SAMPLES = 50

/**
 * Reads the clock of a tab repeatedly; the fastest responses give the tightest bounds. Both clocks run at the
 * same rate, because they are on one machine.
 */
export async function offsetOf(timeInTab: () => Promise<number>): Promise<Offset> {
  let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let i = 0; i < SAMPLES; i++) {
    const before = performance.now()
    const inTab = await timeInTab()
    least = Math.max(least, before - inTab - ROUNDED_MS)
    most = Math.min(most, performance.now() - inTab + ROUNDED_MS)
  }
  return { least, most }
}

/**
 * Converts the operations recorded by a tab to the clock of the test. Each spans the longest time that it may
 * have taken: treating doubtful cases as concurrent avoids false violations.
 */
export function byTestClock(
  recorded: readonly RecordedOperation[],
  { least, most }: Offset,
): RecordedOperation[] {
  return recorded.map((operation) => ({
    ...operation,
    calledAt: operation.calledAt + least - ROUNDED_MS,
    returnedAt: operation.returnedAt + most + ROUNDED_MS,
  }))
}

import type { RecordedOperation } from './operations.ts'

/** What has to be added to the time of a tab to have that of the test: no less than the one, no more than the other, in milliseconds. */
export interface Offset {
  readonly least: number
  readonly most: number
}

/** One time asked of a tab, between two of the test. */
export interface TimeSample {
  readonly before: number
  readonly inTab: number
  readonly after: number
}

/** Browsers round times, up or down, to so many milliseconds where pages are not isolated. */
const ROUNDED_MS = 0.1

const SAMPLES = 50

/** Asks a tab for its time again and again: the quickest answers tell the most. Its clock and that of the test go at the same pace, as they are of one machine. */
export async function offsetOf(timeInTab: () => Promise<number>): Promise<Offset> {
  const samples: TimeSample[] = []
  for (let i = 0; i < SAMPLES; i++) {
    const before = performance.now()
    const inTab = await timeInTab()
    samples.push({ before, inTab, after: performance.now() })
  }
  return offsetBy(samples)
}

export function offsetBy(samples: readonly TimeSample[]): Offset {
  return {
    least: Math.max(...samples.map(({ before, inTab }) => before - inTab)) - ROUNDED_MS,
    most: Math.min(...samples.map(({ inTab, after }) => after - inTab)) + ROUNDED_MS,
  }
}

/**
 * What a tab recorded, with times that what other tabs recorded can be compared with: as long as each operation may have lasted. What is doubtful is
 * concurrent, so that nothing is held against a history that is right.
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

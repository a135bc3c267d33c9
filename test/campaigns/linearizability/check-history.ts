import { checkStream, type Verdict, type Violation } from './check-stream.ts'
import { type History, isEffective, type RecordedOperation, UNKNOWN } from './operations.ts'

/** A violation in one stream of a history. */
export interface Finding {
  readonly stream: string
  /** The operations of the stream that the violation needs, in the order of their calls. */
  readonly history: History
  readonly verdict: Exclude<Verdict, { kind: 'linearizable' }>
}

/**
 * Returns undefined if the history is linearizable. Each stream is checked separately, because no operation
 * concerns two streams.
 */
export function checkHistory(history: History): Finding | undefined {
  for (const [stream, operations] of byStream(history)) {
    const verdict = checkStream(operations)
    if (verdict.kind === 'undecided') return { stream, history: operations, verdict }
    if (verdict.kind === 'violation') return { stream, ...shortened(operations, verdict) }
  }
  return undefined
}

function byStream(history: History): Map<string, RecordedOperation[]> {
  const streams = new Map<string, RecordedOperation[]>()
  for (const recorded of history) {
    const operations = streams.get(recorded.stream) ?? []
    operations.push(recorded)
    streams.set(recorded.stream, operations)
  }
  return streams
}

interface Shortened {
  readonly history: History
  readonly verdict: Violation
}

/** The same violation without later operations, and without observations that it does not need. */
function shortened(history: History, verdict: Violation): Shortened {
  const sorted = [...history].sort((a, b) => a.calledAt - b.calledAt)
  let shortest = shortestBeginning({ history: sorted, verdict })
  // Removes halves, then quarters, and finally single operations.
  for (
    let size = Math.ceil(shortest.history.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let start = 0; start < shortest.history.length; ) {
      const fewer = violationOf(withoutObservations(shortest.history, start, start + size))
      if (fewer === undefined || fewer.history.length === shortest.history.length) start += size
      else shortest = fewer
    }
  }
  return shortest
}

/** Operations that had not returned by then have an unknown outcome. */
function shortestBeginning(whole: Shortened): Shortened {
  const returns = whole.history.map(({ returnedAt }) => returnedAt).sort((a, b) => a - b)
  let shortest = whole
  let [least, most] = [0, returns.length - 1]
  while (least < most) {
    const middle = (least + most) >> 1
    const found = violationOf(until(returns[middle]!, whole.history))
    if (found === undefined) least = middle + 1
    else {
      most = middle
      shortest = found
    }
  }
  return shortest
}

function until(end: number, history: History): History {
  return history
    .filter(({ calledAt }) => calledAt <= end)
    .flatMap((recorded): RecordedOperation[] => {
      if (recorded.returnedAt <= end) return [recorded]
      return recorded.operation.kind === 'append' ? [{ ...recorded, outcome: UNKNOWN }] : []
    })
}

function withoutObservations(history: History, start: number, end: number): History {
  return history.filter((recorded, index) => index < start || index >= end || isEffective(recorded))
}

/** The number of configurations to search in order to find a shorter history. */
const CONFIGURATIONS_MAX = 20_000

function violationOf(history: History): Shortened | undefined {
  const verdict = checkStream(history, { configurationsMax: CONFIGURATIONS_MAX })
  return verdict.kind === 'violation' ? { history, verdict } : undefined
}

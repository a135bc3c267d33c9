import { checkStream, type Verdict, type Violation } from './check-stream.ts'
import {
  type Append,
  type History,
  isEffective,
  type Outcome,
  type RecordedOperation,
  recordsOf,
} from './operations.ts'
import { contradiction } from './stream-model.ts'

/** The number of placed operations to print before the unplaced ones. */
const PRECEDING_MAX = 12

/**
 * Returns undefined if the history is linearizable, or else a report. Each stream is checked separately,
 * because no operation concerns two streams.
 */
export function checkHistory(history: History): string | undefined {
  for (const stream of new Set(history.map((recorded) => recorded.stream))) {
    const verdict = checkStream(history.filter((recorded) => recorded.stream === stream))
    if (verdict.kind !== 'linearizable') return `stream ${stream}: ${described(verdict)}`
  }
  return undefined
}

function described(verdict: Exclude<Verdict, { kind: 'linearizable' }>): string {
  return verdict.kind === 'undecided'
    ? `undecided after ${verdict.configurations} configurations`
    : describedViolation(verdict)
}

/** The end of the longest valid order, and why nothing can come next. */
function describedViolation({ order, state, blocked }: Violation): string {
  const preceding = order.slice(-PRECEDING_MAX)
  const required = blocked.filter(({ outcome }) => outcome.kind !== 'unknown')
  return [
    `not linearizable. The longest order has ${order.length - preceding.length} operations, and then:`,
    ...preceding.map((recorded) => `  ${describedOperation(recorded)}`),
    `which leads to tail ${state.tail}, token "${state.fencingToken}". One of these must come next, but none can:`,
    ...required.map((recorded) => {
      const reason = contradiction(state, recorded) ?? 'where it could, nothing else could come after'
      return `  ${describedOperation(recorded)}: ${reason}${describedDifference(recorded, order)}`
    }),
    `nor does it help to place any of ${blocked.length - required.length} appends of unknown outcome`,
  ].join('\n')
}

function describedOperation({ id, client, operation, outcome, ...times }: RecordedOperation): string {
  const [called, returned] = [times.calledAt, times.returnedAt].map((time) => Number(time.toFixed(3)))
  const { kind, ...details } = operation
  const more = kind === 'append' ? ` ${JSON.stringify(details)}` : ''
  return `[${called}, ${returned}] #${id} client ${client}: ${kind}${more} → ${describedOutcome(outcome)}`
}

function describedOutcome(outcome: Outcome): string {
  if (outcome.kind === 'read') return `${outcome.tail} records`
  const values = Object.entries(outcome).map(([name, value]) =>
    name === 'kind' ? value : `${name} ${value}`,
  )
  return values.join(', ')
}

/** Where a read differs from the records of the order. */
function describedDifference({ outcome }: RecordedOperation, order: History): string {
  if (outcome.kind !== 'read') return ''
  const written = order.filter(isEffective).flatMap(({ operation }) => recordsOf(operation as Append))
  const found = outcome.bodies
  const at = Array.from({ length: Math.max(found.length, written.length) }, (_, index) => index).find(
    (index) => found[index] !== written[index],
  )
  return at === undefined ? '' : `; it has ${found[at]} at ${at}, where the order has ${written[at]}`
}

import type { Finding } from './check-history.ts'
import type { Violation } from './check-stream.ts'
import {
  type AppendOperation,
  type History,
  isEffective,
  type Outcome,
  type RecordedOperation,
} from './operations.ts'
import { contradiction, type StreamState } from './stream-model.ts'

/** The number of placed operations to print before the unplaced ones. */
const PRECEDING_MAX = 12

/** Describes a violation: the end of the longest valid order, and why nothing can come next. */
export function describeFinding({ stream, history, verdict }: Finding): string {
  if (verdict.kind === 'undecided') {
    return `stream ${stream}: undecided after ${verdict.configurations} configurations of ${history.length} operations`
  }
  const preceding = verdict.order.slice(-PRECEDING_MAX)
  const omitted = verdict.order.length - preceding.length
  const required = verdict.blocked.filter(({ outcome }) => outcome.kind !== 'unknown')
  const optionalCount = verdict.blocked.length - required.length
  return [
    `stream ${stream} is not linearizable. The longest order ends with (${omitted} operations before are left out):`,
    ...preceding.map((recorded) => `  ${described(recorded)}`),
    `which leads to ${describedState(verdict.state)}. One of these must come next, but none can:`,
    ...required.map((recorded) => `  ${described(recorded)}: ${reason(recorded, verdict)}`),
    ...(optionalCount > 0
      ? [`  nor does it help to place any of ${optionalCount} appends of unknown outcome`]
      : []),
    ...differences(verdict, history),
  ].join('\n')
}

function reason(recorded: RecordedOperation, { state }: Violation): string {
  return contradiction(state, recorded) ?? 'where it could, nothing else could come after'
}

function described({ id, client, operation, outcome, calledAt, returnedAt }: RecordedOperation): string {
  const called = operation.kind === 'append' ? describedAppend(operation) : operation.kind
  const time = (value: number) => Number(value.toFixed(3))
  const end = outcome.kind === 'unknown' ? '…' : time(returnedAt)
  return `[${time(calledAt)}, ${end}] #${id} client ${client}: ${called} → ${describedOutcome(outcome)}`
}

function describedAppend({
  recordHashes,
  matchSeqNum,
  fencingToken,
  setFencingToken,
}: AppendOperation): string {
  return [
    `append ${recordHashes.length}`,
    ...(setFencingToken === undefined ? [] : [`set token ${JSON.stringify(setFencingToken)}`]),
    ...(fencingToken === undefined ? [] : [`if token ${JSON.stringify(fencingToken)}`]),
    ...(matchSeqNum === undefined ? [] : [`if tail ${matchSeqNum}`]),
  ].join(', ')
}

function describedOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'appended':
      return `${outcome.start} to ${outcome.end}`
    case 'refused':
      if ('seqNum' in outcome) return `refused: the tail is ${outcome.seqNum}`
      return `refused: the token is ${JSON.stringify(outcome.fencingToken)}`
    case 'read':
      return `${outcome.tail} records, hash ${hexadecimal(outcome.streamHash)}`
    case 'tail':
      return `${outcome.tail}`
    case 'not-made':
    case 'unknown':
    case 'failed':
      return outcome.kind
  }
}

function describedState({ tail, streamHash, fencingToken }: StreamState): string {
  return `tail ${tail}, hash ${hexadecimal(streamHash)}, token ${JSON.stringify(fencingToken)}`
}

function hexadecimal(hash: bigint): string {
  return hash.toString(16).padStart(16, '0')
}

/** The positions where the unplaced reads differ from the order. */
function differences({ order, blocked }: Violation, history: History): string[] {
  const written = recordsOf(order.filter(isEffective))
  const names = new Map(recordsOf(history).map(({ hash, name }) => [hash, name]))
  return blocked.flatMap(({ id, outcome }) => {
    if (outcome.kind !== 'read' || outcome.recordHashes === undefined) return []
    const found = outcome.recordHashes
    const length = Math.max(found.length, written.length)
    const index = Array.from({ length }, (_, i) => i).find((i) => found[i] !== written[i]?.hash)
    if (index === undefined) return []
    const hash = found[index]
    const instead = hash === undefined ? 'nothing' : (names.get(hash) ?? 'a record of no append')
    return [`#${id} has ${instead} at ${index}, where the order has ${written[index]?.name ?? 'nothing'}`]
  })
}

function recordsOf(history: History): { hash: bigint; name: string }[] {
  return history.flatMap(({ id, operation }) => {
    if (operation.kind !== 'append') return []
    return operation.recordHashes.map((hash, index) => ({ hash, name: `record ${index} of #${id}` }))
  })
}

import { afterAppend, EMPTY_STREAM, type StreamState, verdictOn } from '../model/stream-state.ts'
import { type Append, type History, type Outcome, type RecordedOperation, recordsOf } from './operations.ts'

/**
 * Returns undefined if the history is linearizable, or else why not. It must end with a read of each stream.
 * Each stream is checked separately, because no operation concerns two streams.
 */
export function checkHistory(history: History): string | undefined {
  for (const stream of new Set(history.map((recorded) => recorded.stream))) {
    const problem = checkStream(history.filter((recorded) => recorded.stream === stream))
    if (problem !== undefined) return `stream ${stream}: not linearizable: ${problem}`
  }
  return undefined
}

/**
 * The longest read shows in which order the appends took effect, so no order has to be searched. The states
 * between the appends are the versions of the stream, identified by their number of records. Each operation
 * took effect in a version in which the sequential model gives it its outcome. If it was called after another
 * operation had returned, that version is not before the one that the other operation has left or seen.
 */
function checkStream(history: History): string | undefined {
  const reads = history.map(({ outcome }) => (outcome.kind === 'read' ? outcome.bodies : []))
  const log = reads.reduce((longest, bodies) => (bodies.length > longest.length ? bodies : longest), [])
  const positions = positionsOf(history, log)
  const versions = new Map([[0, EMPTY_STREAM]])
  let state = EMPTY_STREAM
  for (const [recorded, start] of positions) {
    const problem = appendProblem(state, recorded, start, log)
    if (problem !== undefined) return `${described(recorded)}: ${problem}`
    state = afterAppended(state, recorded.operation as Append)
    versions.set(state.tail, state)
  }
  if (state.tail < log.length) return `record ${state.tail}, ${log[state.tail]}, was not appended`
  return orderProblem(history, (recorded) => {
    const start = positions.get(recorded)
    if (start === undefined) return observedVersions(recorded.outcome, recorded, versions, log)
    return [{ before: start, after: start + recordsOf(recorded.operation as Append).length }]
  })
}

/** Returns the appends that took effect, with their positions, in this order. */
function positionsOf(history: History, log: readonly string[]): ReadonlyMap<RecordedOperation, number> {
  const places = new Map(log.map((body, seqNum) => [body, seqNum]))
  const positions = history.flatMap((recorded): [RecordedOperation, number][] => {
    const { operation, outcome } = recorded
    if (outcome.kind === 'appended') return [[recorded, outcome.start]]
    if (outcome.kind !== 'unknown') return []
    // Only the first record may be one that other appends have too: the fence that clears the token.
    const records = recordsOf(operation as Append)
    const last = places.get(records.at(-1)!)
    return last === undefined ? [] : [[recorded, last + 1 - records.length]]
  })
  return new Map(positions.sort(([, a], [, b]) => a - b))
}

/** Returns why an append cannot have been stored at a position, as a clause. */
function appendProblem(
  state: StreamState,
  { operation, outcome }: RecordedOperation,
  start: number,
  log: readonly string[],
): string | undefined {
  const append = operation as Append
  const records = recordsOf(append)
  if (start !== state.tail) return `it is at ${start}, and the append before it ends at ${state.tail}`
  const other = records.findIndex((body, index) => log[start + index] !== body)
  if (other >= 0) return `record ${start + other} is ${log[start + other]}`
  if (outcome.kind === 'appended' && outcome.end !== start + records.length)
    return `${records.length} records were appended`
  const verdict = verdictOn(state, modelOf(append))
  return verdict.kind === 'refused'
    ? `its condition does not hold: ${JSON.stringify(verdict.error)}`
    : undefined
}

/** The numbers of records before and after an operation. */
interface Version {
  readonly before: number
  readonly after: number
}

/** Returns the versions in which an operation without effect has its outcome; undefined if it has none. */
function observedVersions(
  outcome: Outcome,
  { operation }: RecordedOperation,
  versions: ReadonlyMap<number, StreamState>,
  log: readonly string[],
): Version[] | undefined {
  const having = (isRight: (state: StreamState) => boolean) =>
    [...versions.values()].filter(isRight).map(({ tail }) => ({ before: tail, after: tail }))
  switch (outcome.kind) {
    case 'read':
      return having(
        ({ tail }) => tail === outcome.tail && outcome.bodies.join() === log.slice(0, tail).join(),
      )
    case 'tail':
      return having(({ tail }) => tail === outcome.tail)
    case 'refused':
      return having((state) => {
        const verdict = verdictOn(state, modelOf(operation as Append))
        if (verdict.kind !== 'refused') return false
        return 'seqNum' in outcome
          ? verdict.error.seqNum === outcome.seqNum
          : verdict.error.fencingToken === outcome.fencingToken
      })
    default:
      return undefined
  }
}

/** Returns which operation has no version that agrees with those that returned before its call. */
function orderProblem(
  history: History,
  versionsOf: (recorded: RecordedOperation) => readonly Version[] | undefined,
): string | undefined {
  const events = withTailsOfAcks(history).flatMap((recorded) => [
    { at: recorded.calledAt, isCall: true, recorded },
    { at: recorded.returnedAt, isCall: false, recorded },
  ])
  events.sort((a, b) => a.at - b.at || Number(b.isCall) - Number(a.isCall))
  const chosen = new Map<RecordedOperation, Version>()
  let latest: { readonly recorded: RecordedOperation; readonly after: number } | undefined
  for (const { isCall, recorded } of events) {
    const least = latest?.after ?? 0
    if (isCall) {
      const versions = versionsOf(recorded)
      if (versions === undefined) continue
      // The first one excludes the least of what follows.
      const version = versions.find(({ before }) => before >= least)
      if (version === undefined) {
        const possible = versions.map(({ before }) => before).join() || 'none'
        const earlier = latest === undefined ? '' : ` and ${described(latest.recorded)} returned before`
        return `${described(recorded)}: its tail is ${possible}, not from ${least} on${earlier}`
      }
      chosen.set(recorded, version)
      continue
    }
    const version = chosen.get(recorded)
    // An append of unknown outcome may take effect later.
    if (version === undefined || recorded.outcome.kind === 'unknown' || version.after <= least) continue
    latest = { recorded, after: version.after }
  }
  return undefined
}

/**
 * The tail in an ack is the tail of the stream at some time during the append, like a separate tail check.
 */
function withTailsOfAcks(history: History): RecordedOperation[] {
  return history.flatMap((recorded) => {
    const { outcome } = recorded
    if (outcome.kind !== 'appended' || outcome.tail <= outcome.end) return [recorded]
    return [
      recorded,
      { ...recorded, operation: { kind: 'check-tail' }, outcome: { kind: 'tail', tail: outcome.tail } },
    ]
  })
}

function afterAppended(state: StreamState, append: Append): StreamState {
  const records = recordsOf(append)
  const [start, end] = [state.tail, state.tail + records.length].map((seqNum) => ({ seqNum, timestamp: 0 }))
  return afterAppend(state, modelOf(append), { appendedAt: 0, start: start!, end: end! })
}

function modelOf(append: Append) {
  const { matchSeqNum, fencingToken, setFencingToken: fence } = append
  return { conditions: { matchSeqNum, fencingToken }, count: recordsOf(append).length, fence, closes: false }
}

function described({ id, client, operation, outcome, calledAt, returnedAt }: RecordedOperation): string {
  const [called, returned] = [calledAt, returnedAt].map((time) => Number(time.toFixed(3)))
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

import type { AppendOutcome } from '../linearizability/operations.ts'
import { type Batch, recordsOf, textOf } from './batch.ts'

/** A record that was read. */
export interface LogRecord {
  readonly seqNum: number
  readonly timestamp: number
  /** Of `textOf`. */
  readonly text: string
}

/** What completed calls have shown of a stream: later calls must not see less. */
export interface Known {
  readonly tail: number
  readonly trimPoint: number
}

/** A call, its result, and what was known when it began. */
export type Observation = { readonly since: Known } & (
  | { readonly kind: 'append'; readonly batch: Batch; readonly outcome: AppendOutcome }
  | { readonly kind: 'tail'; readonly tail: number }
  /** Records from a position on. */
  | { readonly kind: 'read'; readonly from: number; readonly records: readonly LogRecord[] }
)

type Append = Extract<Observation, { readonly kind: 'append' }>

/** The stream before a batch, or at its end. */
interface State {
  readonly tail: number
  readonly trimPoint: number
  readonly fencingToken: string
}

/** Returns what contradicts the records of a stream, all that were ever appended. */
export function checkLog(log: readonly LogRecord[], observations: readonly Observation[]): string[] {
  const findings = log.flatMap((record, at) => {
    if (record.seqNum !== at) return [`record ${record.seqNum} is at position ${at}`]
    return record.timestamp < (log[at - 1]?.timestamp ?? 0) ? [`the timestamp of record ${at} is lower`] : []
  })
  const positions = new Map<string, number>()
  for (const { seqNum, text } of log) {
    if (isCommand(text)) continue
    if (positions.has(text)) findings.push(`records ${positions.get(text)} and ${seqNum} are one: ${text}`)
    positions.set(text, seqNum)
  }
  const appends = observations.filter(({ kind }) => kind === 'append') as Append[]
  const stored = new Map<number, Append>()
  for (const append of appends) {
    const commands = recordsOf(append.batch).length - append.batch.bodies.length
    const position = positions.get(append.batch.bodies[0]!)
    if (position !== undefined) stored.set(position - commands, append)
    else if (append.outcome.kind === 'appended') findings.push(`lost: ${describe(append)}`)
  }
  const states = replay(log, stored, findings)
  for (const observation of observations) {
    const description = contradiction(observation, log, states)
    if (description !== undefined) findings.push(description)
  }
  return findings
}

/** Returns the states between the batches of the log. */
function replay(log: readonly LogRecord[], stored: Map<number, Append>, findings: string[]): State[] {
  let state: State = { tail: 0, trimPoint: 0, fencingToken: '' }
  const states = [state]
  while (state.tail < log.length) {
    const append = stored.get(state.tail)
    if (append === undefined) {
      findings.push(`no append begins at record ${state.tail}`)
      break
    }
    const records = recordsOf(append.batch).map(textOf)
    const tail = state.tail + records.length
    const found = log.slice(state.tail, tail).map(({ text }) => text)
    if (String(found) !== String(records)) findings.push(`stored as [${found}]: ${describe(append)}`)
    findings.push(...storedContradictions(append, state, tail))
    const { setFencingToken, trimTo = 0 } = append.batch
    state = {
      tail,
      trimPoint: Math.max(state.trimPoint, trimTo),
      fencingToken: setFencingToken ?? state.fencingToken,
    }
    states.push(state)
  }
  return states
}

function storedContradictions(append: Append, before: State, end: number): string[] {
  const { since, batch, outcome } = append
  const { matchSeqNum = before.tail, fencingToken = before.fencingToken } = batch
  const isAtAck = outcome.kind !== 'appended' || (outcome.start === before.tail && outcome.end === end)
  const checks: readonly (readonly [string, boolean])[] = [
    ['stored without effect', outcome.kind === 'appended' || outcome.kind === 'unknown'],
    [`stored at ${before.tail}, not as acknowledged`, isAtAck],
    [`stored at ${before.tail}, before the tail ${since.tail} at its call`, before.tail >= since.tail],
    [`stored at ${before.tail}, not where it had to be`, matchSeqNum === before.tail],
    [`stored while the fence was "${before.fencingToken}"`, fencingToken === before.fencingToken],
  ]
  return checks.flatMap(([description, holds]) => (holds ? [] : [`${description}: ${describe(append)}`]))
}

function contradiction(
  observation: Observation,
  log: readonly LogRecord[],
  states: readonly State[],
): string | undefined {
  const { since } = observation
  const later = states.filter(({ tail, trimPoint }) => tail >= since.tail && trimPoint >= since.trimPoint)
  switch (observation.kind) {
    case 'tail': {
      const { tail } = observation
      return later.some((state) => state.tail === tail) ? undefined : `a tail of ${tail} after ${since.tail}`
    }
    case 'read': {
      const { from, records } = observation
      const first = records[0]?.seqNum
      const isSame = records.every(({ seqNum, timestamp, text }, index) => {
        const record = log[seqNum]
        return seqNum === first! + index && text === record?.text && timestamp === record.timestamp
      })
      if (!isSame) return `other records in a read from ${from}`
      if (later.some(({ trimPoint }) => first === Math.max(from, trimPoint))) return undefined
      return `a read from ${from} that begins with ${first}, after a trim to ${since.trimPoint}`
    }
    case 'append': {
      const { batch, outcome } = observation
      if (outcome.kind !== 'refused' || later.some((state) => isRefusal(state, batch, outcome))) return
      return `no reason to refuse: ${describe(observation)}`
    }
  }
}

/** Whether the state refuses the batch in this way. The fence is checked first. */
function isRefusal(
  { tail, fencingToken }: State,
  batch: Batch,
  outcome: AppendOutcome & { readonly kind: 'refused' },
): boolean {
  const isFenced = batch.fencingToken !== undefined && batch.fencingToken !== fencingToken
  if ('fencingToken' in outcome) return isFenced && outcome.fencingToken === fencingToken
  const isElsewhere = batch.matchSeqNum !== undefined && batch.matchSeqNum !== tail
  return !isFenced && isElsewhere && outcome.seqNum === tail
}

function isCommand(text: string): boolean {
  return /^(fence|trim) /.test(text)
}

function describe({ batch, outcome, since }: Append): string {
  return JSON.stringify({ batch, outcome, since })
}

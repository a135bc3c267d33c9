import type { AppendOutcome } from '../linearizability/operations.ts'

/** When a call began and when it ended, in milliseconds of one clock. */
interface Call {
  readonly from: number
  readonly to: number
}

/** A stream between its creation and its deletion. The next one has the same name. */
export interface Life {
  readonly created: Call
  /** From the first attempt to delete it to the response. */
  deleted?: Call
  /** The retention of all of its records in milliseconds; undefined for no limit. */
  readonly ageMs: number | undefined
}

export interface LifeAppend extends Call {
  readonly bodies: readonly string[]
  readonly outcome: AppendOutcome
}

export interface LifeTrim extends Call {
  readonly point: number
  readonly isAcknowledged: boolean
}

/** A change of whether appends need a timestamp. */
export interface LifeChange extends Call {
  readonly requiresTimestamp: boolean
  readonly isAcknowledged: boolean
}

/** A batch from a position on; the tail if there was none. */
export interface LifePage extends Call {
  readonly at: number
  readonly records: readonly { readonly seqNum: number; readonly body: string; readonly isCommand: boolean }[]
  readonly tail: number | undefined
}

/** All calls to the streams that had one name. */
export class LifeHistory {
  readonly lives: Life[] = []
  readonly appends: LifeAppend[] = []
  readonly trims: LifeTrim[] = []
  readonly changes: LifeChange[] = []
  readonly pages: LifePage[] = []
}

/** How long after its acknowledgement a trim may be invisible, and an expired record visible. */
export interface Grace {
  readonly trimMs: number
  readonly expiryMs: number
}

/** Returns what contradicts the promises of streams that are deleted and created again. */
export function checkLives(history: LifeHistory, grace: Grace): string[] {
  const appendOf = new Map(history.appends.flatMap((append) => append.bodies.map((body) => [body, append])))
  return [
    ...history.pages.flatMap((page) => originFindings(history, page, appendOf)),
    ...history.lives.flatMap((life, index) => lifeFindings(history, life, index, appendOf, grace)),
  ]
}

/** Each record was appended, and not to a stream that was deleted before the read. */
function originFindings(
  { lives }: LifeHistory,
  page: LifePage,
  appendOf: ReadonlyMap<string, LifeAppend>,
): string[] {
  return page.records.flatMap(({ seqNum, body, isCommand }) => {
    if (isCommand) return []
    const append = appendOf.get(body)
    if (append === undefined || append.from > page.to) return [`record ${seqNum} has no append: ${body}`]
    const { kind } = append.outcome
    if (kind === 'refused' || kind === 'not-made') return [`stored without effect: ${body}`]
    const isOld = lives.some(
      ({ deleted }) => deleted !== undefined && deleted.to <= page.from && append.to <= deleted.from,
    )
    return isOld ? [`record ${seqNum} of a deleted stream: ${body}`] : []
  })
}

function lifeFindings(
  history: LifeHistory,
  life: Life,
  index: number,
  appendOf: ReadonlyMap<string, LifeAppend>,
  grace: Grace,
): string[] {
  const { created, deleted } = life
  const within = <Kind extends Call>(calls: readonly Kind[]) =>
    calls.filter(({ from, to }) => from >= created.to && to <= (deleted?.from ?? Number.POSITIVE_INFINITY))
  const appends = within(history.appends)
  const changes = history.changes.filter(({ from }) => from >= created.to)
  /** Calls that can have had an effect on this stream. */
  const since = history.lives[index - 1]?.deleted?.from ?? 0
  const possible = <Kind extends Call>(calls: readonly Kind[], until: number) =>
    calls.filter(({ from, to }) => from <= until && to >= since)
  const findings: string[] = []
  const bodies = new Map<number, string>()
  const place = (seqNum: number, body: string): void => {
    const other = bodies.get(seqNum)
    if (other !== undefined && other !== body) findings.push(`record ${seqNum} is ${other} and ${body}`)
    bodies.set(seqNum, body)
  }

  for (const append of appends) {
    const { outcome } = append
    if (outcome.kind !== 'appended') continue
    for (const [i, body] of append.bodies.entries()) place(outcome.start + i, body)
    if (outcome.end !== outcome.start + append.bodies.length) findings.push(`an ack of ${outcome.end}`)
    const before = possible(history.appends, append.to).reduce((sum, other) => sum + other.bodies.length, 0)
    const most = before + possible(history.trims, append.to).length
    if (outcome.end > most)
      findings.push(`stored up to ${outcome.end} of ${most} records: ${append.bodies[0]}`)
    if (needsTimestamp(changes, append)) findings.push(`stored without timestamp: ${append.bodies[0]}`)
  }
  for (const page of within(history.pages)) {
    for (const { seqNum, body, isCommand } of page.records) if (!isCommand) place(seqNum, body)
    const trims = possible(history.trims, page.to)
    const hidden = within(history.trims).filter(
      (trim) => trim.isAcknowledged && trim.to + grace.trimMs <= page.from,
    )
    findings.push(
      ...pageFindings(page, {
        trimmedAtMost: Math.max(0, ...trims.map(({ point }) => point)),
        trimmedAtLeast: Math.max(0, ...hidden.map(({ point }) => point)),
        acknowledged: appends.filter(({ to, outcome }) => to <= page.from && outcome.kind === 'appended'),
        ageMs: life.ageMs,
        appendOf,
        grace,
      }),
    )
  }
  return findings
}

interface Expected {
  readonly trimmedAtMost: number
  readonly trimmedAtLeast: number
  readonly acknowledged: readonly LifeAppend[]
  readonly ageMs: number | undefined
  readonly appendOf: ReadonlyMap<string, LifeAppend>
  readonly grace: Grace
}

function pageFindings(page: LifePage, expected: Expected): string[] {
  const { trimmedAtMost, trimmedAtLeast, acknowledged, ageMs, appendOf, grace } = expected
  const findings: string[] = []
  const found = new Set(page.records.map(({ seqNum }) => seqNum))
  const [first, last] = [page.records[0]?.seqNum, page.records.at(-1)?.seqNum]
  for (const [i, { seqNum, body }] of page.records.entries()) {
    if (seqNum !== first! + i) findings.push(`record ${seqNum} follows ${first! + i - 1}`)
    const append = appendOf.get(body)
    if (ageMs !== undefined && append !== undefined && append.to + ageMs + grace.expiryMs < page.from) {
      findings.push(`record ${seqNum} is shown after its retention`)
    }
  }
  if (first !== undefined && first < Math.max(page.at, trimmedAtLeast)) {
    findings.push(`a read from ${page.at} begins with ${first} after a trim to ${trimmedAtLeast}`)
  }
  for (const { bodies, outcome, from } of acknowledged) {
    if (outcome.kind !== 'appended' || (ageMs !== undefined && page.to - from >= ageMs - 50)) continue
    for (let seqNum = outcome.start; seqNum < outcome.end; seqNum++) {
      if (seqNum < Math.max(page.at, trimmedAtMost) || found.has(seqNum)) continue
      if (seqNum >= (page.tail ?? Number.POSITIVE_INFINITY) || seqNum <= (last ?? -1)) {
        findings.push(`record ${seqNum} is lost: ${bodies[seqNum - outcome.start]}`)
      }
    }
  }
  return findings
}

/** Whether the last change before the append required a timestamp, and no other one can have followed. */
function needsTimestamp(changes: readonly LifeChange[], append: LifeAppend): boolean {
  const before = changes.filter(({ from }) => from <= append.to)
  const last = before.at(-1)
  if (last === undefined || last.to > append.from) return false
  return last.requiresTimestamp && before.every(({ isAcknowledged }) => isAcknowledged)
}

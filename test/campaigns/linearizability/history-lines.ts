import { type History, type Operation, type RecordedOperation, recordsOf } from './operations.ts'
import { recordHash, streamHashOf } from './stream-hash.ts'

/**
 * The history of one stream as JSON lines, in the form of the protocol's published checker: a line for each
 * call and each return, in the order in which they happened (see README.md).
 */
export function historyLines(history: History): string {
  const clientOf = clientIds(history)
  const events = history.flatMap((recorded) => {
    const { id, calledAt } = recorded
    const line = (event: string) => `{"event":${event},"client_id":${clientOf.get(recorded)},"op_id":${id}}\n`
    return [
      { time: calledAt, rank: 0, line: line(`{"Start":${startOf(recorded.operation)}}`) },
      { time: endOf(recorded), rank: 1, line: line(`{"Finish":${finishOf(recorded)}}`) },
    ]
  })
  // Calls precede returns at the same time, so that the operations count as concurrent.
  events.sort((a, b) => (a.time === b.time ? a.rank - b.rank : a.time - b.time))
  return events.map(({ line }) => line).join('')
}

/**
 * A client of the checker has one operation open at a time. While one of a client may still take effect, the
 * client continues under another id.
 */
function clientIds(history: History): Map<RecordedOperation, number> {
  let next = 1 + Math.max(0, ...history.map(({ client }) => client))
  const current = new Map<number, { readonly id: number; readonly end: number }>()
  const ids = new Map<RecordedOperation, number>()
  for (const recorded of [...history].sort((a, b) => a.calledAt - b.calledAt)) {
    const { client, calledAt } = recorded
    const before = current.get(client)
    const id = before === undefined ? client : before.end < calledAt ? before.id : next++
    current.set(client, { id, end: endOf(recorded) })
    ids.set(recorded, id)
  }
  return ids
}

/** An operation that may still take effect has not returned within the history. */
function endOf({ outcome, returnedAt }: RecordedOperation): number {
  return outcome.kind === 'unknown' ? Number.POSITIVE_INFINITY : returnedAt
}

function startOf(operation: Operation): string {
  if (operation.kind === 'read') return '"Read"'
  if (operation.kind === 'check-tail') return '"CheckTail"'
  const { setFencingToken = null, fencingToken, matchSeqNum = null } = operation
  const hashes = recordsOf(operation).map(recordHash)
  const members = [
    `"num_records":${hashes.length}`,
    // `JSON.stringify` has no integers of 64 bits.
    `"record_hashes":[${hashes.join()}]`,
    `"set_fencing_token":${JSON.stringify(setFencingToken)}`,
    // The checker knows no empty token that a new stream has: it would reject the append.
    `"fencing_token":${JSON.stringify(fencingToken || null)}`,
    `"match_seq_num":${matchSeqNum}`,
  ]
  return `{"Append":{${members.join()}}}`
}

function finishOf({ operation, outcome }: RecordedOperation): string {
  switch (outcome.kind) {
    case 'appended':
      return `{"AppendSuccess":{"tail":${outcome.end}}}`
    case 'refused':
    case 'not-made':
      return '"AppendDefiniteFailure"'
    case 'unknown':
      return '"AppendIndefiniteFailure"'
    case 'read':
      return `{"ReadSuccess":{"tail":${outcome.tail},"stream_hash":${streamHashOf(outcome.bodies)}}}`
    case 'tail':
      return `{"CheckTailSuccess":{"tail":${outcome.tail}}}`
    case 'failed':
      return operation.kind === 'read' ? '"ReadFailure"' : '"CheckTailFailure"'
  }
}

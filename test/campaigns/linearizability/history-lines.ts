import { type History, type Operation, type RecordedOperation, recordsOf } from './operations.ts'
import { recordHash } from './stream-hash.ts'

/**
 * The history of one stream as JSON lines: a line for each call and each return, in the order in which they
 * happened (see README.md). Hashes are numbers of up to 64 bits, which `JSON.parse` would round.
 */
export function historyLines(history: History): string {
  const clients = new Clients(history)
  const events = history.flatMap((recorded) => {
    const { id, calledAt } = recorded
    const client = clients.idOf(recorded)
    const line = (event: string) => `{"event":${event},"client_id":${client},"op_id":${id}}\n`
    return [
      { time: calledAt, rank: 0, line: line(`{"Start":${startOf(recorded.operation)}}`) },
      { time: endOf(recorded), rank: 1, line: line(`{"Finish":${finishOf(recorded)}}`) },
    ]
  })
  // Calls precede returns at the same time, so that the operations count as concurrent.
  const byTime = ({ time: one }: { time: number }, { time: other }: { time: number }) =>
    one < other ? -1 : one > other ? 1 : 0
  return events
    .sort((a, b) => byTime(a, b) || a.rank - b.rank)
    .map(({ line }) => line)
    .join('')
}

/**
 * A client has one operation open at a time. While an earlier one may still take effect, it continues under
 * another id.
 */
class Clients {
  readonly #ids = new Map<RecordedOperation, number>()

  constructor(history: History) {
    let next = 1 + Math.max(0, ...history.map(({ client }) => client))
    const current = new Map<number, { readonly id: number; readonly end: number }>()
    for (const recorded of [...history].sort((a, b) => a.calledAt - b.calledAt)) {
      const { client, calledAt } = recorded
      const before = current.get(client)
      const id = before === undefined ? client : before.end < calledAt ? before.id : next++
      current.set(client, { id, end: endOf(recorded) })
      this.#ids.set(recorded, id)
    }
  }

  idOf(recorded: RecordedOperation): number {
    return this.#ids.get(recorded)!
  }
}

/** An operation that may still take effect has not returned within the history. */
function endOf({ outcome, returnedAt }: RecordedOperation): number {
  return outcome.kind === 'unknown' ? Number.POSITIVE_INFINITY : returnedAt
}

function startOf(operation: Operation): string {
  switch (operation.kind) {
    case 'append': {
      const { setFencingToken = null, fencingToken, matchSeqNum = null } = operation
      const hashes = recordsOf(operation).map(recordHash)
      const members = [
        `"num_records":${hashes.length}`,
        `"record_hashes":[${hashes.join()}]`,
        `"set_fencing_token":${JSON.stringify(setFencingToken)}`,
        // The published checker knows no empty token that a new stream has: it would reject the append.
        `"fencing_token":${JSON.stringify(fencingToken || null)}`,
        `"match_seq_num":${matchSeqNum}`,
      ]
      return `{"Append":{${members.join()}}}`
    }
    case 'read':
      return '"Read"'
    case 'check-tail':
      return '"CheckTail"'
  }
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
      return `{"ReadSuccess":{"tail":${outcome.tail},"stream_hash":${outcome.streamHash}}}`
    case 'tail':
      return `{"CheckTailSuccess":{"tail":${outcome.tail}}}`
    case 'failed':
      return operation.kind === 'read' ? '"ReadFailure"' : '"CheckTailFailure"'
  }
}

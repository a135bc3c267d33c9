import type { AppendOperation, History, Operation, Outcome } from './operations.ts'
import { FAILED, NOT_MADE, UNKNOWN } from './operations.ts'

interface Append {
  readonly num_records: number
  readonly record_hashes: readonly string[]
  readonly set_fencing_token: string | null
  readonly fencing_token: string | null
  readonly match_seq_num: number | null
}

interface Line {
  readonly event:
    | { readonly Start: 'Read' | 'CheckTail' | { readonly Append: Append } }
    | {
        readonly Finish:
          | 'AppendDefiniteFailure'
          | 'AppendIndefiniteFailure'
          | 'ReadFailure'
          | 'CheckTailFailure'
          | { readonly AppendSuccess: { readonly tail: number } }
          | { readonly ReadSuccess: { readonly tail: number; readonly stream_hash: string } }
          | { readonly CheckTailSuccess: { readonly tail: number } }
      }
  readonly client_id: number
  readonly op_id: number
}

/** The history that `historyLines` wrote, as far as the lines tell it: no hashes of the records of a read, no reasons of refusals. */
export function parseHistoryLines(text: string, stream: string): History {
  const lines = text.trimEnd().split('\n').map(parsedLine)
  return lines.flatMap(({ event, client_id: client, op_id: id }, calledAt) => {
    if (!('Start' in event)) return []
    const returnedAt = lines.findIndex((line) => line.op_id === id && 'Finish' in line.event)
    const finish = lines[returnedAt]?.event
    if (finish === undefined || !('Finish' in finish)) throw new Error(`operation ${id} has no Finish`)
    const operation = operationOf(event.Start)
    return [
      { id, client, stream, operation, outcome: outcomeOf(finish.Finish, operation), calledAt, returnedAt },
    ]
  })
}

/** Hashes as strings: numbers of more than 15 digits would be rounded. */
function parsedLine(line: string): Line {
  const quoted = line
    .replace(
      /"record_hashes":\[([^\]]*)\]/,
      (_, hashes: string) => `"record_hashes":[${hashes.replaceAll(/\d+/g, '"$&"')}]`,
    )
    .replace(/"stream_hash":(\d+)/, '"stream_hash":"$1"')
  return JSON.parse(quoted) as Line
}

function operationOf(start: 'Read' | 'CheckTail' | { readonly Append: Append }): Operation {
  if (start === 'Read') return { kind: 'read' }
  if (start === 'CheckTail') return { kind: 'check-tail' }
  const { num_records, record_hashes, set_fencing_token, fencing_token, match_seq_num } = start.Append
  if (num_records !== record_hashes.length) throw new Error('as many hashes as records')
  const append: AppendOperation = {
    kind: 'append',
    recordHashes: record_hashes.map(BigInt),
    ...(set_fencing_token !== null && { setFencingToken: set_fencing_token }),
    ...(fencing_token !== null && { fencingToken: fencing_token }),
    ...(match_seq_num !== null && { matchSeqNum: match_seq_num }),
  }
  return append
}

function outcomeOf(
  finish: Extract<Line['event'], { Finish: unknown }>['Finish'],
  operation: Operation,
): Outcome {
  if (finish === 'AppendDefiniteFailure') return NOT_MADE
  if (finish === 'AppendIndefiniteFailure') return UNKNOWN
  if (typeof finish === 'string') return FAILED
  if ('CheckTailSuccess' in finish) return { kind: 'tail', tail: finish.CheckTailSuccess.tail }
  if ('ReadSuccess' in finish) {
    return { kind: 'read', tail: finish.ReadSuccess.tail, streamHash: BigInt(finish.ReadSuccess.stream_hash) }
  }
  const { tail } = finish.AppendSuccess
  const start = tail - (operation as AppendOperation).recordHashes.length
  return { kind: 'appended', start, end: tail, tail }
}

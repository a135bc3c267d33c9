import type { Append, History, Operation, Outcome, RecordedOperation } from './operations.ts'

/**
 * Parses a drawn history: a line for each client, and a pair of brackets for each operation, from its call to
 * its return. Time runs from left to right.
 *
 * ```
 * [append a,b → 0..2]       [tail → 2]
 *       [append c if 0 → tail 2]  [read → a,b]
 * ```
 *
 * An append has the bodies of its records, `fence TOKEN` for the command (`''` clears), and `if N` and
 * `with TOKEN` for its conditions. Its outcome is `0..2` for the positions, `0..2/3` with another tail,
 * `tail N` or `token T` if it was rejected, `lost` if it certainly had no effect, and `?` if it is unknown.
 */
export function timeline(drawing: string): History {
  const lines = drawing.split('\n').filter((line) => line.trim() !== '')
  const operations = lines.flatMap((line, client) => {
    return [...line.matchAll(/\[([^\]]*)\]/g)].map((match) => {
      const [called, outcome] = parsed(match[1]!.trim())
      // All times must be distinct, including those of brackets in the same column.
      const time = (column: number) => column * lines.length + client
      const [calledAt, returnedAt] = [time(match.index), time(match.index + match[0].length - 1)]
      return { client, stream: 's', operation: called, outcome, calledAt, returnedAt }
    })
  })
  return operations.map((recorded, id): RecordedOperation => ({ id, ...recorded }))
}

function parsed(text: string): [Operation, Outcome] {
  const [called, outcome] = text.split(' → ') as [string, string]
  const [kind, ...rest] = called.split(' ')
  if (kind === 'append' || kind === 'fence') return [appendOf(kind, rest), appendOutcomeOf(outcome)]
  const operation: Operation = { kind: kind === 'tail' ? 'check-tail' : 'read' }
  if (outcome === 'failed') return [operation, { kind: 'failed' }]
  return [operation, kind === 'tail' ? { kind: 'tail', tail: Number(outcome) } : contentsOf(outcome)]
}

function contentsOf(text: string): Outcome {
  const bodies = text === 'nothing' ? [] : text.split(',').map(tokenOf)
  return { kind: 'read', tail: bodies.length, bodies }
}

function appendOf(kind: 'append' | 'fence', [records, ...conditions]: string[]): Append {
  const condition = (word: string) => {
    const index = conditions.indexOf(word)
    return index < 0 ? undefined : conditions[index + 1]!
  }
  const matchSeqNum = condition('if')
  const fencingToken = condition('with')
  return {
    kind: 'append',
    bodies: kind === 'fence' ? [] : records!.split(','),
    ...(kind === 'fence' && { setFencingToken: tokenOf(records!) }),
    ...(matchSeqNum !== undefined && { matchSeqNum: Number(matchSeqNum) }),
    ...(fencingToken !== undefined && { fencingToken: tokenOf(fencingToken) }),
  }
}

function appendOutcomeOf(text: string): Outcome {
  if (text === '?') return { kind: 'unknown' }
  if (text === 'lost') return { kind: 'not-made' }
  const [word, value] = text.split(' ') as [string, string]
  if (word === 'tail') return { kind: 'refused', seqNum: Number(value) }
  if (word === 'token') return { kind: 'refused', fencingToken: tokenOf(value) }
  const [start, end, tail = end] = text.split(/\.\.|\//).map(Number) as [number, number, number?]
  return { kind: 'appended', start, end, tail: tail! }
}

function tokenOf(text: string): string {
  return text === "''" ? '' : text
}

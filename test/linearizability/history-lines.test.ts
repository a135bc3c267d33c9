import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { checkStream } from './check-stream.ts'
import { historyLines } from './history-lines.ts'
import { parseHistoryLines } from './parse-history-lines.ts'
import { simulatedHistory } from './simulated-history.ts'
import { streamHashOf } from './stream-hash.ts'
import { hashOf, timeline } from './timeline.ts'

it('has a line for each call and each return, in their order', () => {
  const history = timeline(`
    [append a,b if 0 with '' → 0..2]   [read → a,b]    [append c → lost]
        [fence x → ?]      [tail → 2] [tail → failed]    [read → failed] [append d with y → token '']`)
  const [a, b, c, d, x] = ['a', 'b', 'c', 'd', 'x'].map(hashOf)
  const append = (hashes: unknown, set: string, given: string, match: string) =>
    `{"Append":{"num_records":${String(hashes).split(',').length},"record_hashes":[${hashes}],` +
    `"set_fencing_token":${set},"fencing_token":${given},"match_seq_num":${match}}}`
  const lines = [
    [`{"Start":${append(`${a},${b}`, 'null', '""', '0')}}`, 0, 0],
    [`{"Start":${append(x, '"x"', 'null', 'null')}}`, 1, 3],
    ['{"Start":"CheckTail"}', 2, 4],
    ['{"Finish":{"AppendSuccess":{"tail":2}}}', 0, 0],
    ['{"Finish":{"CheckTailSuccess":{"tail":2}}}', 2, 4],
    ['{"Start":"CheckTail"}', 2, 5],
    ['{"Start":"Read"}', 0, 1],
    [`{"Finish":{"ReadSuccess":{"tail":2,"stream_hash":${streamHashOf([a!, b!])}}}}`, 0, 1],
    ['{"Finish":"CheckTailFailure"}', 2, 5],
    [`{"Start":${append(c, 'null', 'null', 'null')}}`, 0, 2],
    ['{"Start":"Read"}', 2, 6],
    ['{"Finish":"AppendDefiniteFailure"}', 0, 2],
    ['{"Finish":"ReadFailure"}', 2, 6],
    [`{"Start":${append(d, 'null', '"y"', 'null')}}`, 2, 7],
    ['{"Finish":"AppendDefiniteFailure"}', 2, 7],
    // Nobody knows when it took effect, so it is open to the end, and its client has gone on as another.
    ['{"Finish":"AppendIndefiniteFailure"}', 1, 3],
  ]
  const expected = lines.map(
    ([event, client, id]) => `{"event":${event},"client_id":${client},"op_id":${id}}`,
  )
  expect(historyLines(history).split('\n')).toEqual([...expected, ''])
})

it.each([1, 2, 3])('tells enough to be checked, seed %d', (seed) => {
  const history = simulatedHistory({ seed, operations: 300, lost: 0.02 })
  const text = historyLines(history)
  const read = parseHistoryLines(text, 's')
  expect(read).toHaveLength(history.length)
  expect(historyLines(read)).toBe(text)
  expect(checkStream(read).kind).toBe('linearizable')
})

it('a client has one operation open at a time', () => {
  const lines = historyLines(simulatedHistory({ seed: 4, operations: 300, lost: 0.1 }))
    .trimEnd()
    .split('\n')
  const open = new Set<number>()
  for (const line of lines) {
    const { event, client_id: client } = JSON.parse(line) as { event: object; client_id: number }
    expect(open.has(client)).toBe('Finish' in event)
    if ('Start' in event) open.add(client)
    else open.delete(client)
  }
  expect(open.size).toBe(0)
})

it('is what the documentation shows', () => {
  const page = readFileSync(new URL('../../docs/linearizability.md', import.meta.url), 'utf8')
  const [, lines] = /```json\n([^`]*)```/.exec(page)!
  const history = parseHistoryLines(lines!, 's')
  expect(historyLines(history)).toBe(lines)
  expect(history[0]!.operation).toMatchObject({ recordHashes: [hashOf('a')] })
  expect(checkStream(history).kind).toBe('linearizable')
})

it('lines that were tampered with are found out', () => {
  const text = historyLines(timeline('[append a → 0..1] [append b → 1..2] [read → a,b]'))
  expect(checkStream(parseHistoryLines(text, 's')).kind).toBe('linearizable')
  const stale = text.replace('"ReadSuccess":{"tail":2', '"ReadSuccess":{"tail":1')
  expect(checkStream(parseHistoryLines(stale, 's')).kind).toBe('violation')
})

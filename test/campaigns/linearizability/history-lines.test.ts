import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { historyLines } from './history-lines.ts'
import { simulatedHistory } from './simulated-history.ts'
import { streamHashOf } from './stream-hash.ts'
import { hashOf, timeline } from './timeline.ts'

it('has a line for each call and each return, in order', () => {
  const history = timeline(`
    [append a,b if 0 with '' → 0..2]   [read → a,b]    [append c → lost]
        [fence x → ?]      [tail → 2] [tail → failed]    [read → failed] [append d with y → token '']`)
  const [a, b, c, d, x] = ['a', 'b', 'c', 'd', 'x'].map(hashOf)
  const append = (hashes: unknown, set: string, required: string, match: string) =>
    `{"Append":{"num_records":${String(hashes).split(',').length},"record_hashes":[${hashes}],` +
    `"set_fencing_token":${set},"fencing_token":${required},"match_seq_num":${match}}}`
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
    // Its outcome is unknown, so it stays open to the end, and the client continues under another id.
    ['{"Finish":"AppendIndefiniteFailure"}', 1, 3],
  ]
  const expected = lines.map(
    ([event, client, id]) => `{"event":${event},"client_id":${client},"op_id":${id}}`,
  )
  expect(historyLines(history).split('\n')).toEqual([...expected, ''])
})

it('each client has one open operation at a time', () => {
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

it('encodes the example of the README', () => {
  const page = readFileSync(new URL('./README.md', import.meta.url), 'utf8')
  const [, lines] = /```json\n([^`]*)```/.exec(page)!
  const history = timeline(`
    [append a if 0 → 0..1]
     [read → nothing            ]`)
  expect(historyLines(history)).toBe(lines)
})

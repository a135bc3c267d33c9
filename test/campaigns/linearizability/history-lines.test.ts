import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { historyLines } from './history-lines.ts'
import { chainedHash, recordHash, streamHashOf } from './stream-hash.ts'
import { timeline } from './timeline.ts'

it('has a line for each call and each return, in order', () => {
  const history = timeline(`
    [append a,b if 0 with '' → 0..2]   [read → a,b]    [append c → lost]
        [fence x → ?]      [tail → 2] [tail → failed]    [read → failed] [append d with y → token '']`)
  const [a, b, c, d, x] = ['a', 'b', 'c', 'd', 'x'].map(recordHash)
  const append = (hashes: unknown, set: string, required: string, match: string) =>
    `{"Append":{"num_records":${String(hashes).split(',').length},"record_hashes":[${hashes}],` +
    `"set_fencing_token":${set},"fencing_token":${required},"match_seq_num":${match}}}`
  const lines = [
    [`{"Start":${append(`${a},${b}`, 'null', 'null', '0')}}`, 0, 0],
    [`{"Start":${append(x, '"x"', 'null', 'null')}}`, 1, 3],
    ['{"Start":"CheckTail"}', 2, 4],
    ['{"Finish":{"AppendSuccess":{"tail":2}}}', 0, 0],
    ['{"Finish":{"CheckTailSuccess":{"tail":2}}}', 2, 4],
    ['{"Start":"CheckTail"}', 2, 5],
    ['{"Start":"Read"}', 0, 1],
    [`{"Finish":{"ReadSuccess":{"tail":2,"stream_hash":${streamHashOf(['a', 'b'])}}}}`, 0, 1],
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

it('has null for a condition on the empty token, and an empty text for a fence that clears it', () => {
  const [start] = historyLines(timeline("[fence '' with '' → 0..1]")).split('\n')
  expect(start).toContain('"set_fencing_token":"","fencing_token":null')
})

it('encodes the example of the README', () => {
  const page = readFileSync(new URL('./README.md', import.meta.url), 'utf8')
  const [, lines] = /```json\n([^`]*)```/.exec(page)!
  const history = timeline(`
    [append a if 0 → 0..1]
     [read → nothing            ]`)
  expect(historyLines(history)).toBe(lines)
})
// Values of `xxh3_64(record hash, seed = stream hash)` in the reference implementation.
it.each([
  [0n, 0n, 0xc77b3abb6f87acd9n],
  [0n, 0x0123456789abcdefn, 0xb78df414284277a6n],
  [0xfedcba9876543210n, 0x0123456789abcdefn, 0xa18be6cb2d16bccan],
  [0xffffffffffffffffn, 1n, 0x7928e38151286e3cn],
])('the hash of a stream after %d and a record %d is %d', (streamHash, hashOfRecord, expected) => {
  expect(chainedHash(streamHash, hashOfRecord)).toBe(expected)
})

// Published test vectors of FNV-1a.
it.each([
  ['', 0xcbf29ce484222325n],
  ['a', 0xaf63dc4c8601ec8cn],
  ['foobar', 0x85944171f73967e8n],
])('the hash of a record %j is %d', (body, expected) => {
  expect(recordHash(body)).toBe(expected)
})

import fc from 'fast-check'
import { expect } from 'vitest'
import { decodeError } from '../../../src/wire/errors.ts'
import { objectOf, parseJson } from '../../../src/wire/json.ts'
import { positionOf, tailJson } from '../../../src/wire/json-records.ts'
import { batchEvent, errorEvent } from '../../../src/wire/sse.ts'
import { fuzzText } from './decoder.ts'
import { fencingToken, integer, text } from './models.ts'
import { malformedResponse } from './outcomes.ts'

fuzzText('the tail in the response of a server', {
  models: fc.record({ seqNum: integer, timestamp: integer }),
  encode: tailJson,
  decode: (input) => positionOf(objectOf(parseJson(input), 'body').tail),
  means: (tail) => tail,
  rejects: malformedResponse,
  verify: (tail) => expect(Object.values(tail).every(Number.isSafeInteger)).toBe(true),
  words: '"tail": "seq_num": "timestamp": {} null'.split(' '),
})

fuzzText('an error in the response of a server', {
  models: fc.oneof(
    fc.record({ code: fc.constantFrom('invalid', 'stream_not_found'), message: text }),
    fc.record({ seq_num_mismatch: integer }),
    fc.record({ fencing_token_mismatch: fencingToken }),
  ),
  encode: (error) => JSON.stringify(error),
  decode: decodeError,
  verify: (error) => {
    const length = (error?.message.length ?? 0) + (error?.sentCode.length ?? 0)
    expect(length, 'a message that repeats all of a long answer').toBeLessThan(2500)
  },
  words: [
    ...'"code": "message": {} "__proto__": "seq_num_mismatch": "fencing_token_mismatch":'.split(' '),
    'x'.repeat(2000),
  ],
})

fuzzText('server-sent events, from which no text may start another event', {
  models: text,
  encode: (of) => of,
  decode: (input) => {
    const data = JSON.stringify(input)
    return errorEvent(data) + batchEvent({ lastSeqNum: 1, count: 2, bytes: 3 }, data)
  },
  verify(events, input) {
    const data = JSON.stringify(input)
    expect(eventsIn(events)).toEqual([
      { event: 'error', data },
      { event: 'batch', id: '1,2,3', data },
    ])
  },
  words: ['\n', '\r', '\r\n', '\n\n', '\ndata: x', '\nid: 9', 'event: x\n', ':', '\u2028', '\u0085'],
})

/** Parses events as the standard specifies for a client (HTML, 9.2.6), each with a field only once. */
function eventsIn(stream: string): unknown[] {
  return stream
    .split(/(?:\r\n|\r|\n){2}/)
    .slice(0, -1)
    .map((event) => {
      const lines = event.split(/\r\n|\r|\n/).map((line) => /^([^:]*): ?(.*)$/s.exec(line)!.slice(1))
      expect(new Set(lines.map(([name]) => name)).size, 'fields of an event').toBe(lines.length)
      return Object.fromEntries(lines)
    })
}

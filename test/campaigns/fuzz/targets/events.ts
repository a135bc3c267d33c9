import fc from 'fast-check'
import { assertReadQuery } from '../../../../src/model/read-query.ts'
import { batchEvent, errorEvent, parseLastEventId, resumeQuery } from '../../../../src/wire/sse.ts'
import { checkNumbers, equal } from '../harness/assertions.ts'
import { headwaterError, nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { integer, text } from '../models.ts'

export const lastEventId = target({
  name: 'last-event-id',
  models: fc.record({ lastSeqNum: integer, count: integer, bytes: integer }),
  encode: ({ lastSeqNum, count, bytes }) => `${lastSeqNum},${count},${bytes}`,
  decode: (input: string) => parseLastEventId(input),
  means: (delivered) => delivered,
  refuses: headwaterError('bad_header', 'invalid'),
  verify(delivered) {
    checkNumbers(delivered)
    assertReadQuery(resumeQuery({ count: 5, bytes: 5 }, delivered))
  },
  words: [',', ',,', '0', '-', ' ', '\n', '1,2,3'],
})

/** A client must read exactly what was written: no text may start another event. */
export const events = target({
  name: 'events',
  models: text,
  encode: (of) => of,
  decode: (input: string) => [
    errorEvent(JSON.stringify(input)),
    batchEvent({ lastSeqNum: 1, count: 2, bytes: 3 }, JSON.stringify(input)),
  ],
  refuses: nothing,
  verify([error, batch], input) {
    const data = JSON.stringify(input)
    equal(parsed(error!), [{ event: 'error', id: undefined, data }], 'what a client reads')
    equal(parsed(batch!), [{ event: 'batch', id: '1,2,3', data }], 'what a client reads')
  },
  words: ['\n', '\r', '\r\n', '\n\n', '\ndata: x', '\nid: 9', 'event: x\n', ':', '\u2028', '\u0085'],
})

/** Reads a stream as the standard specifies for a client (HTML, 9.2.6), without `retry`. */
function parsed(stream: string): { event: string; id: string | undefined; data: string }[] {
  const found: { event: string; id: string | undefined; data: string }[] = []
  let fields = new Map<string, string[]>()
  for (const line of stream.split(/\r\n|\r|\n/)) {
    if (line === '') {
      const data = fields.get('data')
      if (data !== undefined)
        found.push({
          event: fields.get('event')!.at(-1)!,
          id: fields.get('id')?.at(-1),
          data: data.join('\n'),
        })
      fields = new Map()
      continue
    }
    const [, name, value] = /^([^:]*):? ?([\s\S]*)$/.exec(line)!
    fields.set(name!, [...(fields.get(name!) ?? []), value!])
  }
  return found
}

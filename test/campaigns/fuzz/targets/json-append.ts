import fc from 'fast-check'
import type { AppendInput } from '../../../../src/model/append-input.ts'
import { appendBatch, type RecordInput } from '../../../../src/model/append-input.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../../src/model/errors.ts'
import { encodeBase64 } from '../../../../src/wire/base64.ts'
import { decodeAppendJson } from '../../../../src/wire/json-append.ts'
import type { DataFormat } from '../../../../src/wire/vendor-headers.ts'
import { equal } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { bytes, fencingToken, integer, text } from '../models.ts'

const conditions = fc.record({
  matchSeqNum: fc.option(integer, { nil: undefined }),
  fencingToken: fc.option(fencingToken, { nil: undefined }),
})

function appends(content: fc.Arbitrary<string | Uint8Array>): fc.Arbitrary<AppendInput> {
  const input: fc.Arbitrary<RecordInput> = fc.record({
    timestamp: fc.option(integer, { nil: undefined }),
    headers: fc.array(fc.tuple(content, content), { maxLength: 3 }),
    body: content,
  })
  return fc.record({ inputs: fc.array(input, { maxLength: 4 }), conditions })
}

/** Numbers that are too large are encoded as the largest permitted ones. */
function jsonOf(
  { inputs, conditions }: AppendInput,
  textOf: (content: string | Uint8Array) => string,
): string {
  const document = {
    records: inputs.map((input) => {
      const { body = '', headers = [], timestamp } = input as Exclude<RecordInput, string | Uint8Array>
      return {
        timestamp,
        headers: headers.map(([name, value]) => [textOf(name), textOf(value)]),
        body: textOf(body),
      }
    }),
    match_seq_num: conditions.matchSeqNum,
    fencing_token: conditions.fencingToken,
  }
  const marked = JSON.stringify(document, (_, value) => (value === Number.POSITIVE_INFINITY ? MARK : value))
  return marked.replaceAll(JSON.stringify(MARK), '18446744073709551615')
}

const MARK = '\0infinite'

const WORDS = [
  ...[
    '"records":',
    '"body":',
    '"headers":',
    '"timestamp":',
    '"match_seq_num":',
    '"fencing_token":',
    '{}',
    '[]',
  ],
  ...[
    '["",""]',
    '["","trim"]',
    '["","fence"]',
    '[["a","b"]],',
    '"body":"AAAAAAAAAAA="',
    'null',
    ',',
    '[',
    ']',
    '}',
  ],
]

function appendTarget(
  name: string,
  format: DataFormat,
  textOf: (content: string | Uint8Array) => string,
  content: fc.Arbitrary<string | Uint8Array>,
) {
  const decode = (input: string) => decodeAppendJson(utf8(input), format)
  return target({
    name,
    models: appends(content),
    encode: (model) => jsonOf(model, textOf),
    decode,
    means: (model) => model,
    refuses: headwaterError('bad_json', 'invalid'),
    verify(value) {
      equal(decode(jsonOf(value, textOf)), value, 'the append, written and read again')
      checkBatch(value)
    },
    words: WORDS,
    share: 30,
  })
}

/** The model accepts the decoded value or rejects it with a reason. */
export function checkBatch({ inputs, conditions }: AppendInput): void {
  try {
    appendBatch(inputs, conditions)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
  }
}

export const appendJson = appendTarget('append-json', 'raw', (content) => content as string, text)
export const appendJsonBase64 = appendTarget(
  'append-json-base64',
  'base64',
  (content) => encodeBase64(content as Uint8Array),
  bytes,
)

import type { SequencedRecord } from '../../src/index.ts'
import { concatBytes, lossyTextOf, utf8 } from '../../src/model/bytes.ts'
import { encodeBase64 } from '../../src/wire/base64.ts'
import type { CliContext } from './context.ts'
import { standardOutput } from './output.ts'

/** Options of commands that print records. */
export const RECORD_OUTPUT_DEFINITIONS = {
  json: { type: 'boolean', default: false, description: 'Print each record as a JSON object on a line' },
  base64: { type: 'boolean', default: false, description: 'With --json: bodies and headers as base64' },
} as const

export const RECORD_OUTPUT_NOTES = [
  'Bodies are printed unchanged. Records with a fence or trim command are printed only with --json.',
]

interface RecordFormat {
  readonly json: boolean
  readonly base64: boolean
}

/** Prints records to standard output as they arrive. */
export async function printRecords(
  batches: AsyncIterable<readonly SequencedRecord[]>,
  format: RecordFormat,
  context: CliContext,
): Promise<void> {
  const output = standardOutput(context.output())
  for await (const records of batches) {
    const bytes = format.json ? jsonLines(records, format.base64) : bodyLines(records)
    if (bytes.length > 0) await output.write(bytes)
  }
}

const LINE_FEED = utf8('\n')

function bodyLines(records: readonly SequencedRecord[]): Uint8Array {
  return concatBytes(records.flatMap((record) => (isCommand(record) ? [] : [record.body, LINE_FEED])))
}

/** A command is a record whose only header has no name. */
function isCommand({ headers }: SequencedRecord): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

function jsonLines(records: readonly SequencedRecord[], base64: boolean): Uint8Array {
  const textOf = base64 ? encodeBase64 : lossyTextOf
  const lines = records.map(({ seqNum, timestamp, headers, body }) =>
    JSON.stringify({
      seq_num: seqNum,
      timestamp,
      headers: headers.map(([name, value]) => [textOf(name), textOf(value)]),
      body: textOf(body),
    }),
  )
  return utf8(`${lines.join('\n')}\n`)
}

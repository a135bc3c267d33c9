import type { SequencedRecord } from '../../src/index.ts'
import { encodeBase64 } from '../../src/model/base64.ts'
import { lossyTextOf, utf8 } from '../../src/model/bytes.ts'
import { timeText } from '../../src/wire/json.ts'
import { flag, type Values, withValue } from './command.ts'
import { CliError, printable, quoteArg } from './errors.ts'
import { compileTemplate, type Fields, fieldLines } from './template.ts'

/** Options of commands that print records. */
export const RECORD_DEFINITIONS = {
  grep: withValue('PATTERN', 'Only records whose body matches this regular expression'),
  'ignore-case': flag('With --grep: ignore case', { alias: 'i' }),
  header: withValue('NAME=VALUE', 'Only records with this header, or with a header NAME; may be repeated', {
    isRepeated: true,
  }),
  format: withValue('TEMPLATE', 'Print records as the template says; see `headwater help format`'),
  json: flag('Print each record as a JSON object on a line'),
  base64: flag('With --json: bodies and headers as base64'),
  commands: flag('Also print the records of fences and trims'),
} as const

/** Which records a command prints, and how. */
export interface PrintFormat {
  /** Whether every record is printed. */
  readonly isComplete: boolean
  /** Whether the record is printed. */
  readonly shows: (record: SequencedRecord) => boolean
  /** Returns what is printed, in parts. */
  readonly partsOf: (record: SequencedRecord) => readonly Uint8Array[]
}

const LINE_FEED = utf8('\n')

/** @throws CliError with exit code 2. */
export function parseRecordFormat(values: Values<typeof RECORD_DEFINITIONS>): PrintFormat {
  const { grep, 'ignore-case': ignoresCase, header, format, json, base64, commands } = values
  const together = (option: string, other: string) =>
    new CliError(2, `\`--${option}\` cannot be combined with \`--${other}\``)
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  if (ignoresCase && grep === undefined) throw new CliError(2, '`--ignore-case` requires `--grep`')
  if (json && format !== undefined) throw together('format', 'json')
  const pattern = grep === undefined ? undefined : patternOf(grep, ignoresCase)
  const conditions = [
    ...(commands ? [] : [(record: SequencedRecord) => record.command === undefined && !isCommand(record)]),
    ...header.map(parseHeaderCondition),
    ...(pattern === undefined ? [] : [(record: SequencedRecord) => pattern.test(bodyText(record))]),
  ]
  return {
    isComplete: conditions.length === 0,
    shows: (record) => conditions.every((holds) => holds(record)),
    partsOf: json
      ? (record) => [jsonLine(record, base64)]
      : format === undefined
        ? (record) => [shownBody(record), LINE_FEED]
        : compileTemplate(format, '`--format`', FIELDS),
  }
}

function patternOf(text: string, ignoresCase: boolean): RegExp {
  try {
    return new RegExp(text, ignoresCase ? 'i' : '')
  } catch (error) {
    throw new CliError(2, `invalid \`--grep\`: ${printable((error as Error).message)}`)
  }
}

/** Splits `NAME=VALUE` or `NAME:VALUE`; the value is undefined without one of the characters. */
export function splitHeader(text: string): readonly [name: string, value: string | undefined] {
  const at = text.search(/[=:]/)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1).trimStart()]
}

function parseHeaderCondition(text: string): (record: SequencedRecord) => boolean {
  const [wanted, value] = splitHeader(text)
  if (wanted === '') {
    throw new CliError(2, `invalid header ${quoteArg(text)}; \`--header\` must be NAME=VALUE or NAME`)
  }
  return ({ headers }) =>
    headers.some(([name, given]) => {
      return lossyTextOf(name) === wanted && (value === undefined || lossyTextOf(given) === value)
    })
}

/** A command is a record whose only header has no name. Commands of later versions have this form, too. */
function isCommand({ headers }: SequencedRecord): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

/** The body as text; a command as `fence worker-2` or `trim 100`. */
function bodyText({ body, command }: SequencedRecord): string {
  if (command?.kind === 'fence') return `fence ${command.token}`.trimEnd()
  return command?.kind === 'trim' ? `trim ${command.seqNum}` : lossyTextOf(body)
}

function shownBody(record: SequencedRecord): Uint8Array {
  return record.command === undefined ? record.body : utf8(bodyText(record))
}

const FIELDS: Fields<SequencedRecord> = {
  o: { description: 'sequence number', valueOf: ({ seqNum }) => String(seqNum) },
  T: { description: 'timestamp in milliseconds since 1970', valueOf: ({ timestamp }) => String(timestamp) },
  D: {
    description: 'timestamp as date and time, such as 2030-01-31T12:00:00.5Z',
    valueOf: ({ timestamp }) => timeText(timestamp),
  },
  s: { description: 'body', valueOf: shownBody },
  S: { description: 'length of the body in bytes', valueOf: ({ body }) => String(body.length) },
  b: { description: 'body in base64', valueOf: ({ body }) => encodeBase64(body) },
  h: {
    description: 'headers as NAME=VALUE,NAME=VALUE',
    valueOf: ({ headers }) => headers.map((header) => header.map(lossyTextOf).join('=')).join(','),
  },
}

/** Describes the fields of `--format`. */
export const FIELD_LINES = fieldLines(FIELDS)

function jsonLine({ seqNum, timestamp, headers, body }: SequencedRecord, base64: boolean): Uint8Array {
  const textOf = base64 ? encodeBase64 : lossyTextOf
  const form = {
    seq_num: seqNum,
    timestamp,
    headers: headers.map(([name, value]) => [textOf(name), textOf(value)]),
    body: textOf(body),
  }
  return utf8(`${JSON.stringify(form)}\n`)
}

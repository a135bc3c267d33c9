import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import type { SequencedRecord } from '../../src/index.ts'
import { encodeBase64, lossyTextOf, utf8 } from '../../src/model/bytes.ts'
import { timeText } from '../../src/wire/json.ts'
import { CliError, printable, quoteArg } from './errors.ts'
import { collect } from './options.ts'

export function printOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  return command
    .option('--grep <PATTERN>', 'Only records whose body matches this regular expression')
    .option('-i, --ignore-case', 'With --grep: ignore case')
    .option(
      '--header <NAME=VALUE>',
      'Only records with this header, or with a header NAME; may be repeated',
      collect,
    )
    .addOption(
      new Option('--format <FORMAT>', 'Print records in this format; see `headwater help format`').conflicts(
        'json',
      ),
    )
    .option('--json', 'Print each record as a JSON object on a line')
    .option('--base64', 'With --json: bodies and headers as base64')
    .option('--commands', 'Also print the records of fences and trims')
}

export type PrintOptions = ReturnType<ReturnType<typeof printOptions<[], Record<never, never>>>['opts']>

/** Which records a command prints, and how. */
export interface PrintFormat {
  readonly isComplete: boolean
  readonly shows: (record: SequencedRecord) => boolean
  /** Returns what is printed, in parts. */
  readonly partsOf: (record: SequencedRecord) => readonly Uint8Array[]
}

const LINE_FEED = utf8('\n')

/** @throws CliError with exit code 2. */
export function printFormat(options: PrintOptions): PrintFormat {
  const { grep, ignoreCase = false, header = [], format, json = false, base64 = false, commands } = options
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  if (ignoreCase && grep === undefined) throw new CliError(2, '`--ignore-case` requires `--grep`')
  const pattern = grep === undefined ? undefined : patternOf(grep, ignoreCase)
  const conditions = [
    ...(commands ? [] : [(record: SequencedRecord) => record.command === undefined && !isCommand(record)]),
    ...header.map(headerCondition),
    ...(pattern === undefined ? [] : [(record: SequencedRecord) => pattern.test(bodyText(record))]),
  ]
  return {
    isComplete: conditions.length === 0,
    shows: (record) => conditions.every((holds) => holds(record)),
    partsOf: json
      ? (record) => [jsonLine(record, base64)]
      : format === undefined
        ? (record) => [shownBody(record), LINE_FEED]
        : compileFormat(format),
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

function headerCondition(text: string): (record: SequencedRecord) => boolean {
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

/** The fields of `--format`, by the letter after the percent sign. */
const FIELDS: Readonly<
  Record<string, readonly [description: string, valueOf: (record: SequencedRecord) => Uint8Array | string]>
> = {
  o: ['sequence number', ({ seqNum }) => String(seqNum)],
  T: ['timestamp in milliseconds since 1970', ({ timestamp }) => String(timestamp)],
  D: ['timestamp as date and time, such as 2030-01-31T12:00:00.5Z', ({ timestamp }) => timeText(timestamp)],
  s: ['body', shownBody],
  S: ['length of the body in bytes', ({ body }) => String(body.length)],
  b: ['body in base64', ({ body }) => encodeBase64(body)],
  h: [
    'headers as NAME=VALUE,NAME=VALUE',
    ({ headers }) => headers.map((header) => header.map(lossyTextOf).join('=')).join(','),
  ],
}

/** A line of help for each field. */
export const FORMAT_HELP = Object.entries(FIELDS).map(
  ([letter, [description]]) => `  %${letter}  ${description}`,
)

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0', '\\': '\\' }

/**
 * Compiles a format to a function that returns its parts.
 *
 * @throws CliError with exit code 2.
 */
function compileFormat(format: string): (record: SequencedRecord) => readonly Uint8Array[] {
  const parts = [...format.matchAll(/([%\\])([\s\S]?)|[^%\\]+/g)].map(([part, mark, letter = '']) => {
    if (mark === undefined) return part
    if (part === '%%') return '%'
    if (mark === '%' && Object.hasOwn(FIELDS, letter)) return FIELDS[letter]![1]
    if (mark === '\\' && Object.hasOwn(ESCAPES, letter)) return ESCAPES[letter]!
    const known = Object.keys(FIELDS).map((one) => `%${one}`)
    const problem =
      mark === '%'
        ? `unknown field \`${printable(part)}\`; expected ${known.join(' ')}, or %% for a percent sign`
        : 'unknown escape; write a backslash as \\\\'
    throw new CliError(2, `invalid \`--format\`: ${problem}; see \`headwater help format\``)
  })
  return (record) =>
    parts.map((part) => {
      const value = typeof part === 'string' ? part : part(record)
      return typeof value === 'string' ? utf8(value) : value
    })
}

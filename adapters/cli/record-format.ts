import type { SequencedRecord } from '../../src/index.ts'
import { lossyTextOf, utf8 } from '../../src/model/bytes.ts'
import type { Header } from '../../src/model/record.ts'
import { encodeBase64 } from '../../src/wire/base64.ts'
import { timeText } from '../../src/wire/json.ts'
import { flag, type Values, withValue } from './command.ts'
import { CliError, printable, quoteArg } from './errors.ts'
import { compileTemplate, type Directive, directiveLines, plainDirective } from './template.ts'

/** Options of commands that print records. */
export const RECORD_DEFINITIONS = {
  grep: withValue('PATTERN', 'Only records whose body matches this regular expression'),
  'ignore-case': flag('With --grep: ignore case', { alias: 'i' }),
  header: withValue('NAME=VALUE', 'Only records with this header, or with a header NAME; may be repeated', {
    isRepeated: true,
  }),
  select: withValue('PATH', 'Print this part of JSON bodies, such as .user.name; only records that have it'),
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
  const { grep, 'ignore-case': ignoresCase, header, select, format, json, base64, commands } = values
  const together = (option: string, other: string) =>
    new CliError(2, `\`--${option}\` cannot be combined with \`--${other}\``)
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  if (ignoresCase && grep === undefined) throw new CliError(2, '`--ignore-case` requires `--grep`')
  if (json && format !== undefined) throw together('format', 'json')
  if (json && select !== undefined) throw together('select', 'json')
  const path = select === undefined ? undefined : parseJsonPath(select, '`--select`')
  const pattern = grep === undefined ? undefined : patternOf(grep, ignoresCase)
  const conditions = [
    ...(commands ? [] : [(record: SequencedRecord) => record.command === undefined && !isCommand(record)]),
    ...header.map(parseHeaderCondition),
    ...(pattern === undefined ? [] : [(record: SequencedRecord) => pattern.test(bodyText(record))]),
    ...(path === undefined ? [] : [(record: SequencedRecord) => selected(record, path) !== undefined]),
  ]
  return {
    isComplete: conditions.length === 0,
    shows: (record) => conditions.every((holds) => holds(record)),
    partsOf: json
      ? (record) => [jsonLine(record, base64)]
      : format === undefined
        ? (record) => [shownBody(record, path), LINE_FEED]
        : compileTemplate(format, '`--format`', directives(path)),
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

function selected({ body }: SequencedRecord, path: JsonPath): string | undefined {
  return selectedText(lossyTextOf(body), path)
}

function shownBody(record: SequencedRecord, path: JsonPath | undefined): Uint8Array {
  if (path !== undefined) return utf8(selected(record, path) ?? '')
  return record.command === undefined ? record.body : utf8(bodyText(record))
}

/** @param path What `--select` selects, which stands for the body. */
function directives(path: JsonPath | undefined): readonly Directive<SequencedRecord>[] {
  return [
    plainDirective('o', 'sequence number', ({ seqNum }) => String(seqNum)),
    plainDirective('T', 'timestamp in milliseconds since 1970', ({ timestamp }) => String(timestamp)),
    plainDirective('D', 'timestamp as date and time, such as 2030-01-31T12:00:00.5Z', ({ timestamp }) =>
      timeText(timestamp),
    ),
    {
      letter: 's',
      argument: 'PATH',
      description: 'body, or what --select selects; %s{.user.name} is a part of a JSON body',
      compile: (argument) => {
        if (argument === '') return (record) => shownBody(record, path)
        const part = parseJsonPath(argument, '`%s`')
        return (record) => selected(record, part) ?? ''
      },
    },
    plainDirective('S', 'length of the body in bytes', ({ body }) => String(body.length)),
    plainDirective('b', 'body in base64', ({ body }) => encodeBase64(body)),
    {
      letter: 'h',
      argument: 'NAME',
      description: 'all headers as NAME=VALUE,NAME=VALUE; %h{tenant} is the value of one',
      compile: (argument) => {
        if (argument === '')
          return ({ headers }) => headers.map((header) => header.map(lossyTextOf).join('=')).join(',')
        return ({ headers }) => headerValue(headers, argument)
      },
    },
  ]
}

function headerValue(headers: readonly Header[], wanted: string): Uint8Array | string {
  return headers.find(([name]) => lossyTextOf(name) === wanted)?.[1] ?? ''
}

/** Describes the directives of `--format`. */
export const DIRECTIVE_LINES = directiveLines(directives(undefined))

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

/** The names of members and the indexes of items that lead to a value. */
type JsonPath = readonly (string | number)[]

const STEP = /\.([^.[\]"\s]+)|\.?\[(-?\d{1,9})\]|\.?\[("(?:[^"\\]|\\.)*")\]|\.("(?:[^"\\]|\\.)*")/y

/**
 * Parses a path such as `.user.name`, `.items[-1].id` or `."any name"`; `.` is the whole value.
 *
 * @param name The argument, for errors: `--select`.
 * @throws CliError with exit code 2.
 */
function parseJsonPath(text: string, name: string): JsonPath {
  const steps: (string | number)[] = []
  let at = 0
  if (text === '.') return steps
  while (at < text.length) {
    STEP.lastIndex = at
    const [step, member, index, bracketed, quoted = bracketed] = STEP.exec(text) ?? []
    if (step === undefined || (at === 0 && !text.startsWith('.'))) break
    const unquoted = member ?? (quoted === undefined ? undefined : textOf(quoted))
    if (index === undefined && unquoted === undefined) break
    steps.push(unquoted ?? Number(index))
    at += step.length
  }
  if (at > 0 && at === text.length) return steps
  throw new CliError(
    2,
    `invalid ${name} ${quoteArg(text)}; it must be a path such as .user.name or .items[0]`,
  )
}

/** Returns the text of a JSON string; undefined if it is malformed. */
function textOf(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}

/** Returns the text of the value at the path, as JSON unless it is a string; undefined if there is none. */
function selectedText(json: string, path: JsonPath): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return undefined
  }
  for (const step of path) {
    if (typeof step === 'number') value = Array.isArray(value) ? value.at(step) : undefined
    else {
      const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, step)
      value = isMember ? (value as Record<string, unknown>)[step] : undefined
    }
  }
  return typeof value === 'string' ? value : JSON.stringify(value)
}

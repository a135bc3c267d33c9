import type { Options } from '../ui/field.tsx'
import type { Start } from './pager.ts'
import type { Format } from './record.ts'

/** The content of the records tab of a stream, as its address stores it. */
export interface RecordsPlace {
  /** The first record in view; undefined at the tail. */
  readonly from?: Start | undefined
  /** The record that is open. */
  readonly record?: number | undefined
  readonly filter?: string | undefined
  /** The terms of values that are shown in columns. */
  readonly columns?: readonly string[] | undefined
  readonly format?: Format | undefined
  /** The message type of protobuf whose records state none. */
  readonly type?: string | undefined
}

/** The formats of bodies that can be chosen. */
export const FORMATS: Options<Format> = [
  ['auto', 'JSON or text'],
  ['text', 'Text'],
  ['hex', 'Hex'],
  ['protobuf', 'Protobuf'],
]

/** The records tab without a choice. */
export const AT_TAIL: Start = { tailOffset: 100 }

/** A place as the query of a fragment: `from=12&q=a%3Db&column=.id`; empty for the tail. */
export function placeText({ from, record, filter, columns = [], format, type }: RecordsPlace): string {
  const text = new URLSearchParams()
  if (from !== undefined && from !== AT_TAIL) text.set('from', startText(from))
  if (record !== undefined) text.set('record', String(record))
  if (filter) text.set('q', filter)
  for (const column of columns) text.append('column', column)
  if (format !== undefined && format !== 'auto') text.set('as', format)
  if (type) text.set('type', type)
  return text.toString()
}

/** The place of a text; what is not valid in it counts as absent. */
export function placeOf(text = ''): RecordsPlace {
  const parts = new URLSearchParams(text)
  const format = parts.get('as')
  return {
    from: startOf(parts.get('from') ?? ''),
    record: integerOf(parts.get('record') ?? ''),
    filter: parts.get('q') ?? '',
    columns: parts.getAll('column'),
    format: FORMATS.find(([one]) => one === format)?.[0] ?? 'auto',
    type: parts.get('type') ?? '',
  }
}

/** A start as text: a sequence number, `-100` before the tail, or `t` and milliseconds. */
function startText({ seqNum, timestamp, tailOffset }: Start): string {
  if (seqNum !== undefined) return String(seqNum)
  return tailOffset === undefined ? `t${Number(timestamp)}` : `-${tailOffset}`
}

function startOf(text: string): Start | undefined {
  const value = integerOf(text.replace(/^[-t]/, ''))
  if (value === undefined) return undefined
  if (text[0] === 't') return { timestamp: value }
  return text[0] === '-' ? { tailOffset: value } : { seqNum: value }
}

function integerOf(text: string): number | undefined {
  const value = Number(text)
  return /^\d+$/.test(text) && Number.isSafeInteger(value) ? value : undefined
}

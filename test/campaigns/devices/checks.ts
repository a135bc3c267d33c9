import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { originOf } from '../../../src/sync/origin.ts'
import type { RecordView } from '../../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../../src/sync/synced-record.ts'
import { Violation } from '../simulation/violation.ts'
import type { Device, DeviceAppend } from './device.ts'
import type { FoldCheck } from './fold-check.ts'
import type { Life } from './server.ts'

/** Throws unless each life of the stream has a record once, in the order of its device and of its tab. */
export function checkServer(lives: readonly Life[]): void {
  for (const { records } of lives) {
    const texts = new Set<string>()
    for (const { body } of records) {
      const text = lossyTextOf(body)
      if (!text.includes('#')) continue
      if (texts.has(text)) throw new Violation('a record is on the server once', text)
      texts.add(text)
    }
    checkOrder(records)
  }
}

/** Throws unless every acknowledged append is on the server, and none that was refused. */
export function checkAppends(
  devices: readonly Device[],
  lives: readonly Life[],
  parked: ReadonlySet<string>,
): void {
  const stored = new Set(lives.flatMap(({ records }) => records.map(({ body }) => lossyTextOf(body))))
  for (const append of devices.flatMap(({ appends }) => appends)) {
    const { outcome } = append
    for (const record of textsOf(append)) {
      if (outcome === 'durable' && !stored.has(record) && !parked.has(record)) {
        throw new Violation('an acknowledged append reaches the server', record)
      }
      if (outcome === 'refused' && stored.has(record)) {
        throw new Violation('a refused append does not reach the server', record)
      }
    }
  }
}

/** Throws unless the numbers of each device increase, and the appends of each tab are in their order. */
function checkOrder(records: readonly SequencedRecord[]): void {
  const numbers = new Map<string, number>()
  const serials = new Map<string, number>()
  for (const { headers, body } of records) {
    const origin = originOf(headers)
    if (origin !== undefined) {
      const { device, number } = origin
      if (number <= (numbers.get(device) ?? -1)) {
        throw new Violation('records of a device keep their order', `${device}/${number}`)
      }
      numbers.set(device, number)
    }
    const match = /^(.+)\/(\d+)#(\d+)$/.exec(lossyTextOf(body))
    if (match === null) continue
    const serial = Number(match[2]) * 1_000 + Number(match[3])
    if (serial <= (serials.get(match[1]!) ?? -1)) {
      throw new Violation('records of a tab keep their order', match[0])
    }
    serials.set(match[1]!, serial)
  }
}

/** Throws unless the copy has the records of the server, from its own first record on. */
export function checkCopy(
  name: string,
  copy: readonly SequencedRecord[],
  { records, trimmedTo }: Life,
): void {
  const first = copy[0]?.seqNum ?? records.length
  if (copy.length !== records.length - first) {
    throw new Violation(
      `the copy of ${name} is complete`,
      `${copy.length} of ${records.length - first} records`,
    )
  }
  if (first < trimmedTo)
    throw new Violation(`trims take effect in the copy of ${name}`, `${first} < ${trimmedTo}`)
  for (const [index, record] of copy.entries()) {
    const original = records[first + index]!
    if (textOfRecord(record) === textOfRecord(original)) continue
    throw new Violation(
      `the copy of ${name} equals the server`,
      `${textOfRecord(record)}, ${textOfRecord(original)}`,
    )
  }
}

export interface ShownOptions {
  readonly lives: readonly Life[]
  /** Records that the app discarded. */
  readonly parked: ReadonlySet<string>
  /** Whether copies may begin in the middle of the stream though nothing was trimmed. */
  readonly startsLate: boolean
}

/**
 * Throws unless every tab of a device shows each acknowledged append, and folds what its view has. An append
 * may be missing if it was trimmed, discarded, or deleted with the stream, and while a copy is begun again.
 */
export function checkShown(device: Device, { lives, parked, startsLate }: ShownOptions): void {
  const { appends, tabs, hasRestarted } = device
  const stored = new Map<string, number>()
  for (const { records } of lives)
    for (const { body, seqNum } of records) stored.set(lossyTextOf(body), seqNum)
  const durable = appends.filter(({ outcome }) => outcome === 'durable').flatMap(textsOf)
  for (const { name, view, folds } of tabs) {
    const shown = view.view
    if (shown?.isCaughtUp !== true) continue
    checkFolded(shown, folds[0]!)
    const texts = new Set(shown.toArray().map(({ body }) => body))
    const first = shown.confirmedLength === 0 ? 0 : shown.at(0)!.seqNum!
    const isEmpty = shown.confirmedLength === 0 && startsLate
    const begin = isEmpty ? Number.POSITIVE_INFINITY : Math.max(first, lives.at(-1)!.trimmedTo)
    for (const text of durable) {
      if (texts.has(text) || parked.has(text)) continue
      const seqNum = stored.get(text)
      if (seqNum !== undefined && (hasRestarted || lives.length > 1 || seqNum < begin)) continue
      throw new Violation(`${name} shows every record that its device has appended`, text)
    }
  }
}

/** Throws unless a fold and a view of the same tab have the same records, from the first of the view on. */
function checkFolded(view: RecordView<SyncedRecord>, { name, isLoaded, fold }: FoldCheck): void {
  if (!isLoaded) return
  const keys = view.toArray().map(({ key }) => key)
  const folded = fold.value.records.map(({ key }) => key).slice(-keys.length || fold.value.records.length)
  if (keys.join() === folded.join()) return
  throw new Violation(`the fold ${name} has the records of the view`, `${folded}, not ${keys}`)
}

/** Returns the texts of the records of an append. */
function textsOf({ text, count }: DeviceAppend): string[] {
  return Array.from({ length: count }, (_, index) => `${text}#${index}`)
}

/** Everything that a record has, as text. */
export function textOfRecord({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  const texts = headers.map(([name, value]) => `${lossyTextOf(name)}: ${lossyTextOf(value)}`)
  return [seqNum, timestamp, ...texts, lossyTextOf(body)].join(' ')
}

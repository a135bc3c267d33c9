import type { SequencedRecord } from '../../../src/index.ts'
import { Violation } from '../harness/violation.ts'
import { type StoredLog, textOf, textOfRecord } from '../model/stream-history.ts'
import type { Device, DeviceAppend } from './device.ts'

/** Whether the headers are those of a command, which views and folds leave out. */
export function isCommand(headers: SequencedRecord['headers']): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

/** Throws unless each life of the stream has a record once, in the order of its tab. */
export function checkServer(lives: readonly StoredLog[]): void {
  for (const { records } of lives) {
    const texts = new Set<string>()
    const places = new Map<string, number>()
    for (const text of records.map(({ body }) => textOf(body))) {
      const match = /^(.+)\/(\d+)#(\d+)$/.exec(text)
      if (match === null) continue
      if (texts.has(text)) throw new Violation('a record is on the server once', text)
      texts.add(text)
      const place = Number(match[2]) * 1_000 + Number(match[3])
      if (place <= (places.get(match[1]!) ?? -1))
        throw new Violation('records of a tab keep their order', text)
      places.set(match[1]!, place)
    }
  }
}

/** Throws unless every acknowledged append is on the server, and none that was refused. */
export function checkAppends(
  devices: readonly Device[],
  lives: readonly StoredLog[],
  parked: ReadonlySet<string>,
): void {
  const stored = new Set(lives.flatMap(({ records }) => records.map(({ body }) => textOf(body))))
  for (const append of devices.flatMap(({ appends }) => appends)) {
    for (const text of textsOf(append)) {
      if (append.outcome === 'durable' && !stored.has(text) && !parked.has(text))
        throw new Violation('an acknowledged append reaches the server', text)
      if (append.outcome === 'refused' && stored.has(text))
        throw new Violation('a refused append does not reach the server', text)
    }
  }
}

/** Throws unless the copy has the records of the server, from its own first record on. */
export function checkCopy(
  name: string,
  copy: readonly SequencedRecord[],
  { records, trimPoint }: StoredLog,
): void {
  const first = copy[0]?.seqNum ?? records.length
  if (first < trimPoint)
    throw new Violation(`trims take effect in the copy of ${name}`, `${first} < ${trimPoint}`)
  const [found, expected] = [copy.map(textOfRecord), records.slice(first).map(textOfRecord)]
  if (found.join('\n') === expected.join('\n')) return
  const index = expected.findIndex((text, place) => text !== found[place])
  throw new Violation(`the copy of ${name} equals the server: ${expected[index]}`, `${found[index]}`)
}

export interface ShownOptions {
  readonly lives: readonly StoredLog[]
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
  const stored = new Map(
    lives.flatMap(({ records }) => records.map(({ body, seqNum }) => [textOf(body), seqNum] as const)),
  )
  const durable = appends.filter(({ outcome }) => outcome === 'durable').flatMap(textsOf)
  for (const { name, view, fold } of tabs) {
    const shown = view.view
    if (shown?.isCaughtUp !== true) continue
    const keys = shown.toArray().map(({ key }) => key)
    const folded = fold.keys?.slice(-keys.length || fold.keys.length)
    if (folded !== undefined && folded.join() !== keys.join())
      throw new Violation(`the fold of ${name} has the records of the view`, `${folded}, not ${keys}`)
    const texts = new Set(shown.toArray().map(({ body }) => body))
    const first = shown.confirmedLength === 0 ? 0 : shown.at(0)!.seqNum!
    const isEmpty = shown.confirmedLength === 0 && startsLate
    const begin = isEmpty ? Number.POSITIVE_INFINITY : Math.max(first, lives.at(-1)!.trimPoint)
    for (const text of durable) {
      if (texts.has(text) || parked.has(text)) continue
      const seqNum = stored.get(text)
      if (seqNum !== undefined && (hasRestarted || lives.length > 1 || seqNum < begin)) continue
      throw new Violation(`${name} shows every record that its device has appended`, text)
    }
  }
}

/** Returns the texts of the records of an append. */
function textsOf({ text, count }: DeviceAppend): string[] {
  return Array.from({ length: count }, (_, index) => `${text}#${index}`)
}

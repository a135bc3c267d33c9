import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { originOf } from '../../../src/sync/origin.ts'
import { Violation } from '../simulation/violation.ts'
import type { Device } from './device.ts'
import type { Life } from './server.ts'

/** Throws unless every acknowledged append is on the server once, in the order of its device. */
export function checkAppends(
  devices: readonly Device[],
  lives: readonly Life[],
  parked: ReadonlySet<string>,
): void {
  const found = new Map<string, number>()
  for (const { records } of lives) {
    const inLife = new Set<string>()
    for (const { body } of records) {
      const text = lossyTextOf(body)
      if (!text.includes('#')) continue
      if (inLife.has(text)) throw new Violation('a record is on the server once', text)
      inLife.add(text)
      found.set(text, (found.get(text) ?? 0) + 1)
    }
    checkOrder(records)
  }
  for (const { text, count, outcome } of devices.flatMap(({ appends }) => appends)) {
    for (let index = 0; index < count; index++) {
      const record = `${text}#${index}`
      const times = found.get(record) ?? 0
      if (outcome === 'durable' && times === 0 && !parked.has(record)) {
        throw new Violation('an acknowledged append reaches the server', record)
      }
      if (outcome === 'refused' && times > 0) {
        throw new Violation('a refused append does not reach the server', record)
      }
      if (times > lives.length) throw new Violation('a record is on the server once', record)
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

function textOfRecord({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  const texts = headers.map(([name, value]) => `${lossyTextOf(name)}: ${lossyTextOf(value)}`)
  return [seqNum, timestamp, ...texts, lossyTextOf(body)].join(' ')
}

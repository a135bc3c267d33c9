import { lossyTextOf, utf8 } from '../model/bytes.ts'
import type { SequencedRecord } from '../model/record.ts'

/** Which streams of a synced basin this device used last, as a function of the records of a log. */
export interface RecentUse {
  /** The time of the last use by name, in the order of use: the latest one last. */
  readonly times: ReadonlyMap<string, number>
  /** How often streams were added to the local basin or removed from it. */
  readonly listings: number
  /** The sequence number after the last record of the log that is included. */
  readonly next: number
}

export const NO_USE: RecentUse = { times: new Map(), listings: 0, next: 0 }

/** How many names are kept. */
const NAMES_MAX = 256
/** A stream that is used all the time is noted once in this time, in milliseconds. */
const NOTED_EVERY_MS = 10_000

interface UseNote {
  /** Names of streams in the order of use. */
  readonly used?: readonly string[] | undefined
  /** Whether streams were added to the local basin or removed from it. */
  readonly listed?: boolean | undefined
}

/** Returns a note as a record of the log. */
export function useRecord(note: UseNote): { readonly body: Uint8Array } {
  return { body: utf8(JSON.stringify(note)) }
}

/** Returns a note of all uses, before which the log is not needed any more. */
export function useSummary({ times }: RecentUse): UseNote {
  return { used: [...times.keys()] }
}

/** Returns the uses after further records of the log. Commands are ignored. */
export function withUseRecords(use: RecentUse, records: readonly SequencedRecord[]): RecentUse {
  if (records.length === 0) return use
  const times = new Map(use.times)
  let { listings } = use
  for (const { body, command, timestamp } of records) {
    if (command !== undefined) continue
    const { used = [], listed } = JSON.parse(lossyTextOf(body)) as UseNote
    for (const name of used) {
      // A summary does not make uses later than they were.
      const time = used.length > 1 ? times.get(name) : undefined
      times.delete(name)
      times.set(name, time ?? timestamp)
    }
    if (listed === true) listings++
  }
  for (const name of [...times.keys()].slice(0, -NAMES_MAX)) times.delete(name)
  return { times, listings, next: records.at(-1)!.seqNum + 1 }
}

/** Returns the names of the used streams, the one that was used last first. */
export function usedNames({ times }: RecentUse): readonly string[] {
  return [...times.keys()].reverse()
}

/** Returns whether the use of a stream is worth a note. */
export function isUseNews({ times }: RecentUse, name: string, now: number): boolean {
  const time = times.get(name)
  return time === undefined || Math.abs(now - time) >= NOTED_EVERY_MS
}

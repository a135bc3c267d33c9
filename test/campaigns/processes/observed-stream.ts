import { setImmediate } from 'node:timers/promises'
import type { Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { HttpClient, JsonSequencedRecord } from '../linearizability/clients/http-client.ts'
import { nextBatch, recordsOf, textOf } from './batch.ts'
import type { Known, LogRecord, Observation } from './check-log.ts'

/** A stream, and all that clients and followers have seen of it. */
export class ObservedStream {
  readonly name: string
  readonly observations: Observation[] = []
  /** The records that each follower got. */
  readonly followed: LogRecord[][] = []
  /** The calls that have ended, whatever their outcome. */
  calls = 0
  #known: Known = { tail: 0, trimPoint: 0 }
  #fencingToken = ''

  constructor(name: string) {
    this.name = name
  }

  /** Makes a random call. `name` is in the records that it appends. */
  async perform(prng: Prng, client: HttpClient, name: string): Promise<void> {
    const choice = prng.next()
    if (choice < 0.75) await this.#append(prng, client, name)
    else if (choice < 0.87 || this.#known.tail === 0) await this.observeTail(client)
    else await this.observeRead(client, prng.chance(0.5) ? 0 : prng.below(this.#known.tail))
    this.calls++
  }

  async #append(prng: Prng, client: HttpClient, name: string): Promise<void> {
    const since = this.#known
    const followed = Math.min(...this.followed.map(({ length }) => length))
    const known = { tail: since.tail, fencingToken: this.#fencingToken, followed }
    const batch = nextBatch(prng, name, known)
    const outcome = await client.appendRecords(recordsOf(batch), batch)
    this.observations.push({ kind: 'append', since, batch, outcome })
    if (outcome.kind === 'appended') {
      this.#learn({ tail: outcome.end, trimPoint: batch.trimTo ?? 0 })
      this.#fencingToken = batch.setFencingToken ?? this.#fencingToken
    } else if (outcome.kind === 'refused') {
      if ('seqNum' in outcome) this.#learn({ tail: outcome.seqNum, trimPoint: 0 })
      else this.#fencingToken = outcome.fencingToken
    }
  }

  /** Resolves to whether the call succeeded. */
  async observeTail(client: HttpClient): Promise<boolean> {
    const since = this.#known
    const outcome = await client.checkTail()
    if (outcome.kind === 'failed') return false
    const { tail } = outcome
    this.observations.push({ kind: 'tail', since, tail })
    this.#learn({ tail, trimPoint: 0 })
    return true
  }

  /** Reads from a position before the tail. Resolves to whether the call succeeded. */
  async observeRead(client: HttpClient, from: number): Promise<boolean> {
    const since = this.#known
    const page = await client.page(from)
    if (page === undefined) return false
    const records = 'records' in page ? page.records.map(logRecord) : []
    this.observations.push({ kind: 'read', since, from, records })
    const first = records[0]?.seqNum ?? 0
    this.#learn({ tail: first + records.length, trimPoint: first > from ? first : 0 })
    return true
  }

  /** Follows with an engine of this process until the signal; reads on where it was after a failure. */
  async follow(stream: Stream, signal: AbortSignal): Promise<void> {
    const records = this.#newFollower()
    while (!signal.aborted) {
      try {
        const session = stream.follow({ seqNum: records.length }, { signal })
        for await (const { seqNum, timestamp, headers, body } of session) {
          add(records, { seqNum, timestamp, text: textOf({ headers, body }) })
        }
      } catch (error) {
        if (error instanceof Misplaced) throw error
      }
      await setImmediate()
    }
  }

  /** Follows with long polls of a process until the signal. */
  async poll(client: HttpClient, ready: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const records = this.#newFollower()
    while (!signal.aborted) {
      await ready()
      const page = await client.page(records.length, 1)
      if (page === undefined) continue
      if (!('records' in page)) throw new Misplaced(`the tail ${page.tail} after ${records.length} records`)
      for (const record of page.records) add(records, logRecord(record))
    }
  }

  #newFollower(): LogRecord[] {
    const records: LogRecord[] = []
    this.followed.push(records)
    return records
  }

  #learn({ tail, trimPoint }: Known): void {
    this.#known = {
      tail: Math.max(this.#known.tail, tail),
      trimPoint: Math.max(this.#known.trimPoint, trimPoint),
    }
  }
}

class Misplaced extends Error {}

function add(records: LogRecord[], record: LogRecord): void {
  if (record.seqNum !== records.length) {
    throw new Misplaced(`record ${record.seqNum} after ${records.length} records`)
  }
  records.push(record)
}

function logRecord(record: JsonSequencedRecord): LogRecord {
  return { seqNum: record.seq_num, timestamp: record.timestamp, text: textOf(record) }
}

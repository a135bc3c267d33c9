import { trimRecord } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { JsonRecord } from '../linearizability/clients/http-client.ts'

/** An append: commands, and then at least one record whose body no other append has. */
export interface Batch {
  readonly bodies: readonly string[]
  readonly setFencingToken?: string
  readonly trimTo?: number
  readonly matchSeqNum?: number
  readonly fencingToken?: string
}

/** What a writer believes of the stream, which may no longer be true. */
export interface KnownState {
  readonly tail: number
  readonly fencingToken: string
  /** Followers have all records before this position. */
  readonly followed: number
}

export function nextBatch(prng: Prng, name: string, { tail, fencingToken, followed }: KnownState): Batch {
  const fences = prng.chance(0.1)
  return {
    bodies: Array.from({ length: 1 + prng.below(4) }, (_, i) => `${name}-${i}`),
    ...(fences && { setFencingToken: prng.chance(0.25) ? '' : name }),
    // Followers miss no record, and one remains to be read.
    ...(!fences && followed > 1 && prng.chance(0.08) && { trimTo: trimPoint(prng.below(followed)) }),
    ...(prng.chance(0.25) && { fencingToken }),
    ...(prng.chance(0.25) && { matchSeqNum: tail }),
  }
}

export function recordsOf({ bodies, setFencingToken, trimTo }: Batch): JsonRecord[] {
  const records: JsonRecord[] = bodies.map((body) => ({ body }))
  if (setFencingToken !== undefined) records.unshift({ headers: [['', 'fence']], body: setFencingToken })
  if (trimTo !== undefined) {
    const body = Buffer.from(trimRecord(trimTo).body).toString('latin1')
    records.unshift({ headers: [['', 'trim']], body })
  }
  return records
}

/** A record as one text. */
export function textOf({ headers = [], body = '' }: JsonRecord): string {
  return headers.length === 0 ? body : `${headers[0]![1]} ${body}`
}

/** Only bytes below 128, so that the command is text in JSON. */
function trimPoint(seqNum: number): number {
  return seqNum & 0x7f_7f_7f
}

import { expect } from 'vitest'
import { WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import type { Head, StorageSession } from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { headAfter, LOG_IDS, placeAt, recordsOf } from './children/blocks.ts'

type Existence = 'there' | 'gone' | 'unknown'

/**
 * The expected content of a directory, according to the acknowledgements of all writers that were killed on
 * it.
 */
export class KilledWriters {
  readonly #heads = new Map<string, Head>()
  readonly #acknowledged = new Map<string, number>()
  readonly #shortLogs = new Map<string, Existence>()
  #document = 0

  /** The output of a writer. */
  note(lines: readonly string[]): void {
    for (const line of lines) {
      const [kind = '', number] = line.split(' ')
      if (kind === 'document' || LOG_IDS.includes(kind)) this.#acknowledged.set(kind, Number(number))
      else this.#noteShortLog(line)
    }
  }

  /** Includes the output of the last writer. */
  async check(session: StorageSession, lines: readonly string[]): Promise<void> {
    this.note(lines)
    for (const logId of LOG_IDS) await this.#checkLog(session, logId, this.#acknowledged.get(logId) ?? 0)
    await this.#checkDocuments(session, this.#acknowledged.get('document') ?? 0)
    for (const logId of this.#shortLogs.keys()) await this.#checkShortLog(session, logId)
  }

  async #checkLog(session: StorageSession, logId: string, acknowledged: number): Promise<void> {
    const before = this.#heads.get(logId) ?? emptyHead(1, 0)
    const head = await session.head(logId)
    if (head === undefined) {
      expect([before.tail.seqNum, acknowledged], `${logId} is gone`).toEqual([0, 0])
      return
    }
    expect(head.tail.seqNum, `tail of ${logId}`).toBeGreaterThanOrEqual(acknowledged)
    expect(head.tail.seqNum, `tail of ${logId}`).toBeGreaterThanOrEqual(before.tail.seqNum)
    let expected = before
    while (expected.tail.seqNum < head.tail.seqNum) expected = headAfter(expected)
    expect(head, `head of ${logId}`).toEqual(expected)
    this.#heads.set(logId, head)

    const blocks = await session.read(logId, WHOLE_LOG)
    let next = 0
    for (const block of blocks) {
      expect(missing(logId, next, block.firstSeqNum, head)).toBe(block.firstSeqNum)
      const records = recordsOf(logId, block.firstSeqNum, block.endSeqNum)
      expect(Buffer.compare(block.data, encodeRecords(records)), `${logId} at ${block.firstSeqNum}`).toBe(0)
      next = block.endSeqNum
    }
    expect(missing(logId, next, head.tail.seqNum, head)).toBe(head.tail.seqNum)
    const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
    expect(await session.measure([logId])).toEqual([bytes])
  }

  async #checkDocuments(session: StorageSession, acknowledged: number): Promise<void> {
    const [one, other] = await Promise.all(['one', 'other'].map((key) => session.get('streams', key)))
    expect(other?.value, 'documents that were written together').toBe(one?.value)
    const found = Number(one?.value ?? 0)
    expect(found).toBeGreaterThanOrEqual(Math.max(acknowledged, this.#document))
    this.#document = found
  }

  #noteShortLog(line: string): void {
    const [kind = '', logId = ''] = line.split(' ')
    if (kind === 'creating' || kind === 'deleting') this.#shortLogs.set(logId, 'unknown')
    if (kind === 'created') this.#shortLogs.set(logId, 'there')
    if (kind === 'deleted') this.#shortLogs.set(logId, 'gone')
  }

  async #checkShortLog(session: StorageSession, logId: string): Promise<void> {
    const head = await session.head(logId)
    const document = await session.get('settings', logId)
    expect(document !== undefined, `${logId} and its document`).toBe(head !== undefined)
    const found = head === undefined ? 'gone' : 'there'
    const expected = this.#shortLogs.get(logId)
    if (expected !== 'unknown') expect(found, logId).toBe(expected)
    // A log that was found once must remain. A deleted log need not be checked again.
    if (found === 'gone') this.#shortLogs.delete(logId)
    else this.#shortLogs.set(logId, 'there')
  }
}

/** Skips blocks that have expired or were trimmed. Returns the first position that must exist. */
function missing(logId: string, from: number, end: number, { trimPoint }: Head): number {
  let next = from
  while (next < end) {
    const { endSeqNum, expiresAt } = placeAt(next)
    if (expiresAt === null && endSeqNum > trimPoint) throw new Error(`${logId} lost record ${next}`)
    next = endSeqNum
  }
  return next
}

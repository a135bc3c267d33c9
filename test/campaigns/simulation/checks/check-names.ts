import type { StreamDocument } from '../../../../src/storage/documents.ts'
import type { StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'

type Histories = ReadonlyMap<string, StreamHistory>

/**
 * Metadata, expiry and source of a stream never change, and the name of a deleted stream stays reserved as
 * long as it has forks. `before` has the documents before a change, by name.
 */
export function checkNames(
  before: ReadonlyMap<string, StreamDocument | undefined>,
  histories: Histories,
): void {
  for (const { name, document } of histories.values()) checkName(name, before.get(name), document, histories)
  checkForkCounts(histories)
}

function checkName(
  name: string,
  before: StreamDocument | undefined,
  document: StreamDocument | undefined,
  histories: Histories,
): void {
  if (before === undefined) return
  if (document?.logId === before.logId) {
    const [lasting, found] = [lastingMembers(before), lastingMembers(document)]
    if (lasting !== found) throw new Violation(`\`${name}\` keeps ${lasting}`, found)
    if (before.deletedAt !== undefined && document.deletedAt === undefined)
      throw new Violation(`\`${name}\` stays deleted`, 'it is there')
  } else if (forksOf(before, histories).length > 0)
    throw new Violation(`the name of \`${name}\` is reserved for its forks`, 'it is free')
}

/** A stream counts its forks. */
function checkForkCounts(histories: Histories): void {
  for (const { name, document } of histories.values()) {
    if (document === undefined) continue
    const count = forksOf(document, histories).length
    if ((document.forks ?? 0) !== count)
      throw new Violation(`\`${name}\` has ${count} forks`, `${document.forks ?? 0}`)
  }
}

function forksOf({ logId }: StreamDocument, histories: Histories): StreamHistory[] {
  return [...histories.values()].filter(({ document }) => document?.forkOf?.logId === logId)
}

function lastingMembers({ metadata, expiry, forkOf, createdAt }: StreamDocument): string {
  return JSON.stringify({ metadata, expiry, forkOf, createdAt })
}

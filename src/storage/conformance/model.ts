import { reclaimablePoint } from '../../core/trims.ts'
import { compareUtf8 } from '../../model/compare-utf8.ts'
import type { Head, JsonValue, ListRange, ReclaimLimits } from '../contract.ts'
import type { ExpectedBlock } from './read-oracle.ts'

export interface ModelDocument {
  readonly value: JsonValue
  /** As the storage gave it. */
  readonly version: number
}

export interface ModelLog {
  readonly head: Head
  readonly appended: readonly ExpectedBlock[]
}

/** The storage contract done naively: what the random tests compare a storage with. Changes are made on a copy. */
export class Model {
  readonly documents: Map<string, ModelDocument>
  readonly logs: Map<string, ModelLog>

  constructor(
    documents: ReadonlyMap<string, ModelDocument> = new Map(),
    logs: ReadonlyMap<string, ModelLog> = new Map(),
  ) {
    this.documents = new Map(documents)
    this.logs = new Map(logs)
  }

  copy(): Model {
    return new Model(this.documents, this.logs)
  }

  list({ prefix, after, limit }: ListRange): string[] {
    return [...this.documents.keys()]
      .filter((key) => key.startsWith(prefix) && compareUtf8(key, after) > 0)
      .sort(compareUtf8)
      .slice(0, limit)
  }

  /** Forgets what expired; what lies below a trim point may live on beside neighbours that it was merged with. */
  reclaim({ now, trimmedBefore }: ReclaimLimits): void {
    for (const [logId, { head, appended }] of this.logs) {
      const kept = appended
        .filter(({ block }) => block.expiresAt === null || block.expiresAt > now)
        .map(({ block, mayBeGone }) => ({
          block,
          mayBeGone: mayBeGone || block.endSeqNum <= reclaimablePoint(head.trims, trimmedBefore),
        }))
      this.logs.set(logId, { head, appended: kept })
    }
  }
}

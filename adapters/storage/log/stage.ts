import { splitBlock } from '../../../src/storage/block-sizes.ts'
import {
  type DocumentVersions,
  type LogHeads,
  planCommit,
  type SerializedChange,
} from '../../../src/storage/commit-plan.ts'
import type { AppendRequest, Collection, Head } from '../../../src/storage/contract.ts'
import { assertExpectedHead, writeStateChange } from '../../../src/storage/heads.ts'
import type { StagedFrame } from './journal.ts'
import { BLOCK_DATA_BYTES } from './segment.ts'
import type { State } from './state.ts'

/**
 * The state as it will be once the current group is durable: what the calls of the group are checked against,
 * in order. A call that throws changes nothing.
 */
export class Stage implements DocumentVersions, LogHeads {
  readonly #state: State
  /** Null: deleted, also below. */
  readonly #heads = new Map<string, Head | null>()
  readonly #versions = new Map<string, number | null>()

  constructor(state: State) {
    this.#state = state
  }

  /** Throws `StorageConflict` if the log does not have the expected head. */
  append({ logId, expected, head, blocks }: AppendRequest): readonly StagedFrame[] {
    const before = this.headOf(logId)
    assertExpectedHead(logId, before, expected)
    const writeState = writeStateChange(before!.writeState, head.writeState)
    this.#heads.set(logId, { ...head, extensions: before!.extensions })
    return blocks.flatMap((block, index) => {
      const pieces = splitBlock(block, BLOCK_DATA_BYTES)
      return pieces.map((piece, count): StagedFrame => {
        const isContinued = count < pieces.length - 1
        const isLast = !isContinued && index === blocks.length - 1
        const part = { kind: 'block', log: logId, block: piece, isContinued } as const
        return { changes: [isLast ? { ...part, head, writeState } : part], data: piece.data }
      })
    })
  }

  /** Throws `StorageConflict` if an expectation does not hold. */
  commit(requests: readonly SerializedChange[]): readonly StagedFrame[] {
    const { documents, logs } = planCommit(requests, this, this)
    for (const { collection, key, content } of documents) {
      this.#versions.set(nameOf(collection, key), content?.version ?? null)
    }
    for (const { logId, head = null } of logs) this.#heads.set(logId, head)
    const changes = [
      ...documents.map(({ collection, key, content = null }) => {
        return { kind: 'document', collection, key, content } as const
      }),
      ...logs.map(({ logId, head = null }) => ({ kind: 'head', log: logId, head }) as const),
    ]
    return changes.length === 0 ? [] : [{ changes }]
  }

  versionOf(collection: Collection, key: string): number | undefined {
    const staged = this.#versions.get(nameOf(collection, key))
    if (staged !== undefined) return staged ?? undefined
    return this.#state.documents(collection).get(key)?.version
  }

  headOf(logId: string): Head | undefined {
    const staged = this.#heads.get(logId)
    return staged === undefined ? this.#state.logs.get(logId)?.head : (staged ?? undefined)
  }

  nextVersion(): number {
    return this.#state.nextVersion++
  }
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: Collection, key: string): string {
  return `${collection}\0${key}`
}

import { splitBlock } from '../../../src/storage/block-sizes.ts'
import {
  type DocumentVersions,
  type LogHeads,
  type LogUpdate,
  planCommit,
  type SerializedChange,
} from '../../../src/storage/commit-plan.ts'
import type { AppendRequest, Collection, Head } from '../../../src/storage/contract.ts'
import { assertExpectedHead, writeStateChange } from '../../../src/storage/heads.ts'
import type { Change } from './changes.ts'
import { CHUNK_DATA_BYTES } from './segment.ts'
import type { State } from './state.ts'

/** What a call writes, and what later calls of its group see of it. */
export interface Staged {
  readonly frames: readonly StagedFrame[]
  /** Heads by log; null: deleted. */
  readonly heads?: ReadonlyMap<string, Head | null> | undefined
  /** Versions by document; null: deleted. */
  readonly versions?: ReadonlyMap<string, number | null> | undefined
}

interface StagedFrame {
  readonly changes: readonly Change[]
  /** The data of its block. */
  readonly data?: Uint8Array | undefined
}

/**
 * The state as it will be once the current group is durable: what the calls of the group are checked against,
 * in order. What a call would write has no effect until it is noted.
 */
export class Stage implements DocumentVersions, LogHeads {
  readonly #state: State
  readonly #heads = new Map<string, Head | null>()
  readonly #versions = new Map<string, number | null>()

  constructor(state: State) {
    this.#state = state
  }

  /** Throws `StorageConflict` if the log does not have the expected head. */
  append({ logId, expected, head, blocks }: AppendRequest): Staged {
    const before = this.headOf(logId)
    assertExpectedHead(logId, before, expected)
    const writeState = writeStateChange(before!.writeState, head.writeState)
    const heads = new Map([[logId, { ...head, extensions: before!.extensions }]])
    const added = blocks.flatMap((block) => {
      const pieces = splitBlock(block, CHUNK_DATA_BYTES)
      return pieces.map((piece, index) => ({ piece, isContinued: index < pieces.length - 1 }))
    })
    const frames = added.map(({ piece, isContinued }, index): StagedFrame => {
      const part = { log: logId, block: piece }
      const isLast = index === added.length - 1
      const change: Change = isLast
        ? { kind: 'append', ...part, head, writeState }
        : { kind: isContinued ? 'part' : 'block', ...part }
      return { changes: [change], data: piece.data }
    })
    return { frames, heads }
  }

  /** Throws `StorageConflict` if an expectation does not hold. */
  commit(requests: readonly SerializedChange[]): Staged {
    const { documents, logs } = planCommit(requests, this, this)
    const versions = new Map<string, number | null>()
    const changes: Change[] = []
    for (const { collection, key, content } of documents) {
      versions.set(nameOf(collection, key), content?.version ?? null)
      changes.push(
        content === undefined
          ? { kind: 'delete', collection, key }
          : { kind: 'put', collection, key, version: content.version, text: content.text },
      )
    }
    for (const update of logs) changes.push(...logChanges(update))
    const heads = new Map(logs.map(({ logId, head }) => [logId, head ?? null]))
    return { frames: changes.length === 0 ? [] : [{ changes }], heads, versions }
  }

  note({ heads, versions }: Staged): void {
    for (const [logId, head] of heads ?? []) this.#heads.set(logId, head)
    for (const [name, version] of versions ?? []) this.#versions.set(name, version)
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

function logChanges({ logId, head, isNew }: LogUpdate): Change[] {
  if (head === undefined) return [{ kind: 'delete-log', log: logId }]
  const { epoch, extensions = [], appendedAt: createdAt, tail, fencingToken } = head
  const setEpoch: Change = { kind: 'set-epoch', log: logId, epoch, extensions }
  if (!isNew) return [setEpoch]
  const create: Change = { kind: 'create-log', log: logId, epoch, createdAt, start: { tail, fencingToken } }
  return extensions.length > 0 ? [create, setEpoch] : [create]
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: Collection, key: string): string {
  return `${collection}\0${key}`
}

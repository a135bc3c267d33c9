import type { RetentionExtension } from '../../../src/core/retention.ts'
import { INTEGER_MAX } from '../../../src/model/limits.ts'
import type { AppendRequest, CatalogChange } from '../../../src/storage/contract.ts'
import { type Mutation, mutate } from './mutation.ts'

export const extensionMutations: readonly Mutation[] = [
  {
    breaks: 'extensions: an append drops them',
    noticedBy: [
      'reclaim: set-epoch sets the extensions of a head, an append keeps them, and so does the next set-epoch',
    ],
    make: mutate((session) => ({ append: (request) => session.append(withoutExtensions(request)) })),
  },
  {
    breaks: 'extensions: set-epoch without any removes them',
    noticedBy: [
      'reclaim: set-epoch sets the extensions of a head, an append keeps them, and so does the next set-epoch',
    ],
    make: mutate((session) => ({
      commit: (changes) => session.commit(withExtensions(changes, (extensions) => extensions ?? [])),
    })),
  },
  {
    breaks: 'extensions: reclaim ignores them',
    noticedBy: [
      'reclaim: blocks that are extended are freed when the extension ends, and no earlier',
      'reclaim: blocks are extended that expired by their own time, but were not freed',
      'reclaim: many extended blocks, small and large, do not keep others from being freed in bounded steps',
    ],
    make: mutate((session) => {
      let known: readonly RetentionExtension[] | undefined
      const keep = (extensions: readonly RetentionExtension[] | undefined) => {
        known = extensions ?? known
        return undefined
      }
      return {
        commit: (changes) => session.commit(withExtensions(changes, keep)),
        append: (request) => session.append(withoutExtensions(request)),
        async head(logId) {
          const head = await session.head(logId)
          return head && { ...head, ...(known && { extensions: known }) }
        },
      }
    }),
  },
  {
    breaks: 'extensions: apply to later blocks',
    noticedBy: [
      'reclaim: an extension applies below its sequence number, and to blocks that expire after its time',
    ],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          withExtensions(changes, (extensions) => extensions?.map((one) => ({ ...one, below: INTEGER_MAX }))),
        ),
    })),
  },
  {
    breaks: 'extensions: apply to blocks that had expired',
    noticedBy: [
      'reclaim: an extension applies below its sequence number, and to blocks that expire after its time',
    ],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          withExtensions(changes, (extensions) => extensions?.map((one) => ({ ...one, after: 0 }))),
        ),
    })),
  },
]

function withoutExtensions(request: AppendRequest): AppendRequest {
  const { extensions: _, ...head } = request.head
  return { ...request, head }
}

function withExtensions(
  changes: readonly CatalogChange[],
  replace: (
    extensions: readonly RetentionExtension[] | undefined,
  ) => readonly RetentionExtension[] | undefined,
): CatalogChange[] {
  return changes.map((change) =>
    change.kind === 'set-epoch' ? { ...change, extensions: replace(change.extensions) } : change,
  )
}

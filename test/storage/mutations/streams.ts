import { wrapped } from '../wrapped-storage.ts'
import type { Mutation } from './mutation.ts'

const PUBLISHED = 'streams: a log that was written first is published with its documents, or not at all'
const LASTING = 'streams: metadata, expiry, reads and deadlines survive closing and a crash'
const WRITE_STATE = 'logs: the write state survives a crash with calls in flight'

/** A storage whose later sessions have lost something. */
function forgetful(change: Parameters<typeof wrapped>[0]): () => ReturnType<typeof wrapped> {
  return () => {
    let isFirst = true
    return wrapped((session, context) => {
      const own = isFirst ? {} : change(session, context)
      isFirst = false
      return own
    })
  }
}

export const streamMutations: readonly Mutation[] = [
  {
    breaks: 'crash: that a log is closed is lost',
    noticedBy: [
      WRITE_STATE,
      'logs: the write state survives closing and opening again, appends and reclaiming',
    ],
    make: forgetful((session) => ({
      async head(logId) {
        const head = await session.head(logId)
        const { closed: _, ...writeState } = head?.writeState ?? {}
        return head?.writeState && { ...head, writeState }
      },
    })),
  },
  {
    breaks: 'crash: producers are lost',
    noticedBy: [WRITE_STATE],
    make: forgetful((session) => ({
      async head(logId) {
        const head = await session.head(logId)
        const { producers: _, ...writeState } = head?.writeState ?? {}
        return head?.writeState && { ...head, writeState }
      },
    })),
  },
  {
    breaks: 'crash: a log without a document is lost',
    noticedBy: [PUBLISHED],
    make: forgetful((session) => ({
      head: async (logId) =>
        (await session.get('streams', logId)) === undefined ? undefined : session.head(logId),
    })),
  },
  {
    breaks: 'publication: a commit is made without the source',
    noticedBy: [PUBLISHED],
    make: () =>
      wrapped((session) => ({
        commit: (changes) =>
          session.commit(changes.filter((change) => !('key' in change) || change.key !== 'source')),
      })),
  },
  {
    breaks: 'crash: reads that were recorded are lost',
    noticedBy: [LASTING],
    make: forgetful((session) => ({
      async get(collection, key) {
        const document = await session.get(collection, key)
        const { readAt: _, ...value } = Object(document?.value)
        return document && key === 'idle' ? { ...document, value } : document
      },
    })),
  },
  {
    breaks: 'crash: deadlines are lost',
    noticedBy: [LASTING],
    make: forgetful((session) => ({
      list: async (collection, range) => (collection === 'deadlines' ? [] : session.list(collection, range)),
    })),
  },
]

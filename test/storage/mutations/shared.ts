import { memory } from '../../../adapters/storage/memory/index.ts'
import { wrapped } from '../wrapped-storage.ts'
import { type Mutation, mutate, mutateContext } from './mutation.ts'

export const sharedMutations: readonly Mutation[] = [
  {
    breaks: 'sessions: each sees a copy of its own',
    noticedBy: [
      'shared: a commit that resolved is seen by every session',
      'shared: an append that resolved is seen by every session',
    ],
    make: () => ({ manifest: memory().manifest, open: (context) => memory().open(context) }),
  },
  {
    breaks: 'notifications: lost',
    noticedBy: ['shared: a session is told of what another did to a log'],
    make: mutateContext((onLogChanged) => {
      let calls = 0
      return (logId) => {
        if (calls++ !== 3) onLogChanged(logId)
      }
    }),
  },
  {
    breaks: 'notifications: only of the first log of a turn',
    noticedBy: ['shared: a session is told of every log that changed, however many at once'],
    make: mutateContext((onLogChanged) => {
      let busy = false
      return (logId) => {
        if (busy) return
        busy = true
        setImmediate(() => {
          busy = false
          onLogChanged(logId)
        })
      }
    }),
  },
  {
    breaks: 'notifications: from within the call',
    noticedBy: ['shared: a session is not told from within a call'],
    make: () => {
      const listeners: ((logId: string) => void)[] = []
      return wrapped((session, { onLogChanged }) => {
        listeners.push(onLogChanged)
        return {
          append(request) {
            for (const listener of listeners) listener(request.logId)
            return session.append(request)
          },
        }
      })
    },
  },
  {
    breaks: 'notifications: before the change',
    noticedBy: ['shared: whoever is told of a change sees it'],
    make: () => {
      const listeners: ((logId: string) => void)[] = []
      return wrapped((session, { onLogChanged }) => {
        listeners.push(onLogChanged)
        return {
          async append(request) {
            for (const listener of listeners) queueMicrotask(() => listener(request.logId))
            await new Promise((resolve) => setImmediate(resolve))
            return session.append(request)
          },
        }
      })
    },
  },
  {
    breaks: 'notifications: after close',
    noticedBy: ['shared: a closed session is told nothing'],
    make: mutate(() => ({ close: async () => {} })),
  },
]

import { memory } from '../../../adapters/storage/memory/index.ts'
import { wrapped } from '../wrapped-storage.ts'
import { type Mutation, mutate, mutateContext } from './mutation.ts'

export const sharedMutations: readonly Mutation[] = [
  {
    breaks: 'sessions: one claims to be exclusive beside another',
    noticedBy: ['shared: a session is not exclusive once another one was open'],
    make: mutate(() => ({ isExclusive: () => true })),
  },
  {
    breaks: 'sessions: each sees a separate copy',
    noticedBy: [
      'shared: a resolved commit is visible to every session',
      'shared: a resolved append is visible to every session',
    ],
    make: () => ({ manifest: memory().manifest, open: (context) => memory().open(context) }),
  },
  {
    breaks: 'notifications: lost',
    noticedBy: ['shared: a session is notified of every kind of change to a log'],
    make: mutateContext((onLogChanged) => {
      let calls = 0
      return (logId) => {
        if (calls++ !== 3) onLogChanged(logId)
      }
    }),
  },
  {
    breaks: 'notifications: only for the first log of a microtask',
    noticedBy: ['shared: a session is notified of every changed log, however many change at once'],
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
    breaks: 'notifications: synchronous within the call',
    noticedBy: ['shared: notifications are never delivered synchronously within a call'],
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
    breaks: 'notifications: sent before the change',
    noticedBy: ['shared: a notified session sees the change'],
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
    breaks: 'notifications: sent after close',
    noticedBy: ['shared: a closed session gets no notifications'],
    make: mutate(() => ({ close: async () => {} })),
  },
]

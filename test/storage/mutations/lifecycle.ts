import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Mutation, mutate } from './mutation.ts'

export const lifecycleMutations: readonly Mutation[] = [
  {
    breaks: 'close: later calls still succeed',
    noticedBy: ['lifecycle: a closed session rejects every call'],
    make: mutate(() => ({ close: async () => {} })),
  },
  {
    breaks: 'close: does not wait for calls in flight',
    noticedBy: ['lifecycle: close waits for calls in flight'],
    make: mutate((session) => ({
      async append(request) {
        // More turns of the event loop than there are while a timer of 0 ms is waited for.
        for (let i = 0; i < 1_000; i++) await new Promise((resolve) => setImmediate(resolve))
        await session.append(request)
      },
    })),
  },
  {
    breaks: 'close: a second call fails',
    noticedBy: ['lifecycle: closing twice does nothing the second time'],
    make: mutate((session) => {
      let closed = false
      return {
        async close() {
          if (closed) return
          await session.close()
          await session.head('a')
          closed = true
        },
      }
    }),
  },
  {
    breaks: 'close: leaves a timer armed',
    noticedBy: ['lifecycle: close leaves no timer armed'],
    make: mutate((_, { clock }) => {
      clock.schedule(1000, () => {})
      return {}
    }),
  },
  {
    breaks: 'reopening: loses all data',
    noticedBy: ['lifecycle: data survives closing and opening again'],
    make: () => ({ manifest: memory().manifest, open: (context) => memory().open(context) }),
  },
  {
    breaks: 'reopening: loses the last acknowledged appends',
    noticedBy: ['lifecycle: acknowledged data survives a close with calls in flight'],
    make: mutate((session) => {
      let calls = 0
      return { append: async (request) => (calls++ < 10 ? session.append(request) : undefined) }
    }),
  },
]

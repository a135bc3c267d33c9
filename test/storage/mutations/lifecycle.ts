import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Mutation, mutate } from './mutation.ts'

export const lifecycleMutations: readonly Mutation[] = [
  {
    breaks: 'close: calls go on being served',
    noticedBy: ['lifecycle: a closed session refuses every call'],
    make: mutate(() => ({ close: async () => {} })),
  },
  {
    breaks: 'close: does not wait',
    noticedBy: ['lifecycle: close waits for what is in flight'],
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
    noticedBy: ['lifecycle: closing twice is closing once'],
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
    breaks: 'close: leaves a timer',
    noticedBy: ['lifecycle: close leaves no timer behind'],
    make: mutate((_, { clock }) => {
      clock.schedule(1000, () => {})
      return {}
    }),
  },
  {
    breaks: 'opening again: what was there is lost',
    noticedBy: ['lifecycle: what was written is there when the storage is opened again'],
    make: () => ({ manifest: memory().manifest, open: (context) => memory().open(context) }),
  },
  {
    breaks: 'opening again: acknowledged appends of the last moment are lost',
    noticedBy: ['lifecycle: what was acknowledged before a close in mid-flight is there afterwards'],
    make: mutate((session) => {
      let calls = 0
      return { append: async (request) => (calls++ < 10 ? session.append(request) : undefined) }
    }),
  },
]

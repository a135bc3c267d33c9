import { type Mutation, mutate } from './mutation.ts'

export const writeStateMutations: readonly Mutation[] = [
  {
    breaks: 'write state: an append drops it',
    noticedBy: [
      'logs: an append replaces the write state, and other appends and epochs keep it',
      'logs: a head has 1,000 producers, which appends replace and drop',
    ],
    make: mutate((session) => ({
      append: ({ head: { writeState: _, ...head }, ...request }) => session.append({ ...request, head }),
    })),
  },
  {
    breaks: 'write state: only its last producer is kept',
    noticedBy: ['logs: pipelined appends replace the write state one after another'],
    make: mutate((session) => ({
      append({ head, ...request }) {
        const { writeState } = head
        const producers = writeState?.producers?.slice(-1)
        const kept = writeState && { writeState: { ...writeState, ...(producers && { producers }) } }
        return session.append({ ...request, head: { ...head, ...kept } })
      },
    })),
  },
]

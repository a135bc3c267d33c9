import { StorageConflict } from '../../../src/storage/errors.ts'
import { identityOf } from '../../../src/storage/heads.ts'
import { type Mutation, mutate } from './mutation.ts'

export const logsMutations: readonly Mutation[] = [
  {
    breaks: 'deletion at an expected tail: ignores the tail',
    noticedBy: ['logs: a log is deleted only at the expected tail'],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          changes.map((change) =>
            change.kind === 'delete-log' ? { kind: 'delete-log', logId: change.logId } : change,
          ),
        ),
    })),
  },
  {
    breaks: 'compare-and-set: ignores the tail',
    noticedBy: [
      'logs: an append that expects a different tail conflicts and writes nothing',
      'logs: the first of several concurrent appends with the same expectation succeeds',
      'shared: one of two appends by different sessions with the same expectation succeeds',
    ],
    make: mutate((session) => ({
      async append(request) {
        for (;;) {
          const head = await session.head(request.logId)
          if (head?.epoch !== request.expected.epoch) return session.append(request)
          const expected = identityOf(head)
          try {
            return await session.append({ ...request, expected })
          } catch (error) {
            if (!StorageConflict.is(error)) throw error
          }
        }
      },
    })),
  },
  {
    breaks: 'compare-and-set: ignores the append id',
    noticedBy: ['logs: an append after one that conflicted fails even if the tail is as expected'],
    make: mutate((session) => ({
      async append(request) {
        const head = await session.head(request.logId)
        const appendId = head?.appendId ?? ''
        return session.append({ ...request, expected: { ...request.expected, appendId } })
      },
    })),
  },
  {
    breaks: 'compare-and-set: ignores the epoch',
    noticedBy: [
      'logs: an append that expects a different epoch conflicts and writes nothing',
      'logs: set-epoch changes nothing but the epoch',
    ],
    make: mutate((session) => ({
      async append(request) {
        const epoch = (await session.head(request.logId))?.epoch ?? 0
        await session.append({ ...request, expected: { ...request.expected, epoch } })
      },
    })),
  },
  {
    breaks: 'order: delays every third append',
    noticedBy: ['logs: pipelined appends take effect in the order of the calls'],
    make: mutate((session) => {
      let calls = 0
      return {
        async append(request) {
          if (calls++ % 3 === 1) await Promise.resolve()
          await session.append(request)
        },
      }
    }),
  },
  {
    breaks: 'head: loses the fencing token',
    noticedBy: ['logs: an append adds its block and replaces the head'],
    make: mutate((session) => ({
      append: (request) => session.append({ ...request, head: { ...request.head, fencingToken: '' } }),
    })),
  },
  {
    breaks: 'creation of a log: loses its start',
    noticedBy: ['logs: a log can start at any position with a fencing token'],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          changes.map((change) => {
            if (change.kind !== 'create-log') return change
            const { start: _, ...atTheBeginning } = change
            return atTheBeginning
          }),
        ),
    })),
  },
  {
    breaks: 'creation of a log: loses its fencing token',
    noticedBy: ['logs: a log can start at any position with a fencing token'],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          changes.map((change) => {
            if (change.kind !== 'create-log' || change.start === undefined) return change
            return { ...change, start: { ...change.start, fencingToken: '' } }
          }),
        ),
    })),
  },
  {
    breaks: 'deletion of a log: only hides it from `head`',
    noticedBy: ['logs: a deleted log does not exist'],
    make: mutate((session) => {
      const deleted = new Set<string>()
      return {
        async commit(changes) {
          await session.commit(changes.filter(({ kind }) => kind !== 'delete-log'))
          for (const change of changes) if (change.kind === 'delete-log') deleted.add(change.logId)
        },
        head: async (logId) => (deleted.has(logId) ? undefined : session.head(logId)),
      }
    }),
  },
]

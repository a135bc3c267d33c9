import { identityOf } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { type Mutation, mutate } from './mutation.ts'

export const logsMutations: readonly Mutation[] = [
  {
    breaks: 'deletion at an expected tail: deletes whatever is there',
    noticedBy: ['logs: a log is deleted at the expected tail only'],
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
    breaks: 'compare-and-set: the tail is not compared',
    noticedBy: [
      'logs: an append that expects another tail conflicts and writes nothing',
      'logs: of appends made at once that expect the same, the first is made',
      'shared: of appends of two sessions that expect the same, one is made',
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
    breaks: 'compare-and-set: the append that left the head is not compared',
    noticedBy: [
      'logs: an append behind one that conflicted fails, even where the tail is the one it expects',
    ],
    make: mutate((session) => ({
      async append(request) {
        const head = await session.head(request.logId)
        const appendId = head?.appendId ?? ''
        return session.append({ ...request, expected: { ...request.expected, appendId } })
      },
    })),
  },
  {
    breaks: 'compare-and-set: the epoch is not compared',
    noticedBy: [
      'logs: an append that expects another epoch conflicts and writes nothing',
      'logs: set-epoch changes the epoch, and nothing else',
    ],
    make: mutate((session) => ({
      async append(request) {
        const epoch = (await session.head(request.logId))?.epoch ?? 0
        await session.append({ ...request, expected: { ...request.expected, epoch } })
      },
    })),
  },
  {
    breaks: 'order: every third append is late',
    noticedBy: ['logs: appends made without waiting take effect in the order of the calls'],
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
    breaks: 'durability of the head: the fencing token is lost',
    noticedBy: ['logs: an append adds its block and replaces the head'],
    make: mutate((session) => ({
      append: (request) => session.append({ ...request, head: { ...request.head, fencingToken: '' } }),
    })),
  },
  {
    breaks: 'creation of a log: where it begins is lost',
    noticedBy: ['logs: a log can begin at any position and with a fencing token, and keeps them'],
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
    breaks: 'creation of a log: the fencing token that it begins with is lost',
    noticedBy: ['logs: a log can begin at any position and with a fencing token, and keeps them'],
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
    breaks: 'deletion of a log: only hidden from `head`',
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

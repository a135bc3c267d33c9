import { type Mutation, mutate } from './mutation.ts'

export const reclaimMutations: readonly Mutation[] = [
  {
    breaks: 'reclaim: frees what expires later',
    noticedBy: ['reclaim: blocks are freed from the time at which they expire'],
    make: mutate((session) => ({ reclaim: (limits) => session.reclaim({ ...limits, now: limits.now + 1 }) })),
  },
  {
    breaks: 'reclaim: frees what was trimmed just now',
    noticedBy: ['reclaim: blocks wholly below the trim point are freed once the trim is old enough'],
    make: mutate((session) => ({
      reclaim: (limits) => session.reclaim({ ...limits, trimmedBefore: limits.trimmedBefore + 1 }),
    })),
  },
  {
    breaks: 'reclaim: frees the block that holds the trim point',
    noticedBy: [
      'reclaim: blocks wholly below the trim point are freed once the trim is old enough',
      'reclaim: no record at or above the trim point is freed, however the storage merges neighbours',
    ],
    make: mutate((session) => {
      let trimmed = false
      return {
        async reclaim(limits) {
          trimmed = true
          return session.reclaim(limits)
        },
        async read(logId, range) {
          const blocks = await session.read(logId, range)
          const trimPoint = (await session.head(logId))?.trimPoint ?? 0
          return trimmed
            ? blocks.filter(({ firstSeqNum }) => trimPoint === 0 || firstSeqNum >= trimPoint)
            : blocks
        },
      }
    }),
  },
  {
    breaks: 'reclaim: frees nothing',
    noticedBy: ['reclaim: blocks are freed from the time at which they expire'],
    make: mutate(() => ({ reclaim: async () => ({ more: false, logIds: [] }) })),
  },
  {
    breaks: 'reclaim: frees everything at once',
    noticedBy: ['reclaim: a call frees at most blocksMax blocks and tells that more is left'],
    make: mutate((session) => ({ reclaim: (limits) => session.reclaim({ ...limits, blocksMax: 1000 }) })),
  },
  {
    breaks: 'reclaim: says that it is done when it is not',
    noticedBy: ['reclaim: a call frees at most blocksMax blocks and tells that more is left'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { logIds } = await session.reclaim(limits)
        return { more: false, logIds }
      },
    })),
  },
  {
    breaks: 'reclaim: says for ever that more is left',
    noticedBy: ['reclaim: with nothing to free, nothing is left'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { logIds } = await session.reclaim(limits)
        return { more: true, logIds }
      },
    })),
  },
  {
    breaks: 'reclaim: does not tell whose blocks it freed',
    noticedBy: ['reclaim: tells the logs of which blocks were freed, and no other'],
    make: mutate((session) => ({
      reclaim: async (limits) => ({ ...(await session.reclaim(limits)), logIds: [] }),
    })),
  },
  {
    breaks: 'reclaim: tells logs of which nothing was freed',
    noticedBy: ['reclaim: tells the logs of which blocks were freed, and no other'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { more, logIds } = await session.reclaim(limits)
        return { more, logIds: [...logIds, 'kept'] }
      },
    })),
  },
  {
    breaks: 'measure: counts what was freed',
    noticedBy: ['reclaim: a log measures as much as the blocks that it holds'],
    make: mutate((session) => {
      const appended = new Map<string, number>()
      return {
        async append(request) {
          await session.append(request)
          const { logId, block } = request
          appended.set(logId, (appended.get(logId) ?? 0) + block.meteredBytes)
        },
        measure: async (logIds) => logIds.map((logId) => appended.get(logId) ?? 0),
      }
    }),
  },
  {
    breaks: 'measure: mixes the logs up',
    noticedBy: ['reclaim: a log measures as much as the blocks that it holds'],
    make: mutate((session) => ({
      measure: async (logIds) => (await session.measure(logIds)).reverse(),
    })),
  },
]

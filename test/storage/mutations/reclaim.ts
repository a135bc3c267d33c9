import { type Mutation, mutate } from './mutation.ts'

export const reclaimMutations: readonly Mutation[] = [
  {
    breaks: 'reclaim: frees blocks that expire later',
    noticedBy: ['reclaim: blocks are freed once they have expired'],
    make: mutate((session) => ({ reclaim: (limits) => session.reclaim({ ...limits, now: limits.now + 1 }) })),
  },
  {
    breaks: 'reclaim: frees blocks that were just trimmed',
    noticedBy: ['reclaim: blocks entirely below a trim point are freed once the trim is old enough'],
    make: mutate((session) => ({
      reclaim: (limits) => session.reclaim({ ...limits, trimmedBefore: limits.trimmedBefore + 1 }),
    })),
  },
  {
    breaks: 'reclaim: frees the block that contains the trim point',
    noticedBy: [
      'reclaim: blocks entirely below a trim point are freed once the trim is old enough',
      'reclaim: no record at or above the trim point is freed, whichever blocks the storage merges',
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
    noticedBy: ['reclaim: blocks are freed once they have expired'],
    make: mutate(() => ({ reclaim: async () => ({ more: false, logIds: [] }) })),
  },
  {
    breaks: 'reclaim: frees everything at once',
    noticedBy: ['reclaim: a call frees at most blocksMax blocks and reports whether more are left'],
    make: mutate((session) => ({ reclaim: (limits) => session.reclaim({ ...limits, blocksMax: 1000 }) })),
  },
  {
    breaks: 'reclaim: reports too early that nothing is left',
    noticedBy: ['reclaim: a call frees at most blocksMax blocks and reports whether more are left'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { logIds } = await session.reclaim(limits)
        return { more: false, logIds }
      },
    })),
  },
  {
    breaks: 'reclaim: always reports that more is left',
    noticedBy: ['reclaim: reclaim reports nothing left if there is nothing to free'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { logIds } = await session.reclaim(limits)
        return { more: true, logIds }
      },
    })),
  },
  {
    breaks: 'reclaim: omits the logs whose blocks it freed',
    noticedBy: ['reclaim: reclaim reports exactly the logs whose blocks were freed'],
    make: mutate((session) => ({
      reclaim: async (limits) => ({ ...(await session.reclaim(limits)), logIds: [] }),
    })),
  },
  {
    breaks: 'reclaim: reports logs without freed blocks',
    noticedBy: ['reclaim: reclaim reports exactly the logs whose blocks were freed'],
    make: mutate((session) => ({
      reclaim: async (limits) => {
        const { more, logIds } = await session.reclaim(limits)
        return { more, logIds: [...logIds, 'kept'] }
      },
    })),
  },
  {
    breaks: 'measure: counts freed blocks',
    noticedBy: ['reclaim: measure returns the metered bytes of the stored blocks'],
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
    breaks: 'measure: confuses the logs',
    noticedBy: ['reclaim: measure returns the metered bytes of the stored blocks'],
    make: mutate((session) => ({
      measure: async (logIds) => (await session.measure(logIds)).reverse(),
    })),
  },
]

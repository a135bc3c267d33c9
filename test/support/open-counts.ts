import type { Engine, EngineStats } from '../../src/index.ts'

type OpenCounts = Omit<
  EngineStats,
  'cachedStreams' | 'storageFull' | 'clockOffsetMs' | 'expiryPaused' | 'lostTails'
>

/** What an engine holds open: all counts are 0 when it is idle. */
export function openCountsOf(hw: Pick<Engine, 'stats'>): OpenCounts {
  const { cachedStreams, storageFull, clockOffsetMs, expiryPaused, lostTails, ...open } = hw.stats()
  return open
}

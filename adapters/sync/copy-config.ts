import type { StreamConfigInput } from '../../src/model/config.ts'

/** Stores timestamps as they are, for ever, and rejects records without one: those of an app. */
export const COPY_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'client-require', uncapped: true },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

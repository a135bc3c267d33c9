import { vi } from 'vitest'

const { waitFor, waitUntil } = vi

/** A busy machine may take longer for anything than the second for which Vitest waits by default. */
const PATIENCE = { timeout: 60_000, interval: 10 }

const patient = <Options extends object>(options?: number | Options) => ({
  ...PATIENCE,
  ...(typeof options === 'number' ? { timeout: options } : options),
})

// `expect.poll` has an option in the configuration; these have none.
vi.waitFor = (callback, options) => waitFor(callback, patient(options))
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options))

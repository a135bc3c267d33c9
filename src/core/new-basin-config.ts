import type { BasinConfig } from '../model/config.ts'

/** What a basin's configuration is where nothing is said of it (wire-behaviour.md 8.3). */
export const NEW_BASIN_CONFIG: BasinConfig = {
  defaultStreamConfig: {},
  streamCipher: null,
  createStreamOnAppend: false,
  createStreamOnRead: false,
}

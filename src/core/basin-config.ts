import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../model/config.ts'
import { NEW_BASIN_CONFIG } from './new-basin-config.ts'
import { normalizeStreamConfig, patchStreamConfig } from './stream-reconfiguration.ts'

/** A basin's configuration as given, with everything unspecified at its default (wire-behaviour.md 8.3). */
export function basinConfig(input: BasinConfigInput): BasinConfig {
  return {
    defaultStreamConfig: normalizeStreamConfig(
      input.defaultStreamConfig ?? NEW_BASIN_CONFIG.defaultStreamConfig,
    ),
    streamCipher: input.streamCipher ?? NEW_BASIN_CONFIG.streamCipher,
    createStreamOnAppend: input.createStreamOnAppend ?? NEW_BASIN_CONFIG.createStreamOnAppend,
    createStreamOnRead: input.createStreamOnRead ?? NEW_BASIN_CONFIG.createStreamOnRead,
  }
}

/** A basin's configuration after a change (wire-behaviour.md 8.5). */
export function reconfigureBasin(current: BasinConfig, change: BasinReconfiguration): BasinConfig {
  return {
    defaultStreamConfig:
      change.defaultStreamConfig === null
        ? {}
        : patchStreamConfig(current.defaultStreamConfig, change.defaultStreamConfig ?? {}),
    streamCipher: change.streamCipher === undefined ? current.streamCipher : change.streamCipher,
    createStreamOnAppend: change.createStreamOnAppend ?? current.createStreamOnAppend,
    createStreamOnRead: change.createStreamOnRead ?? current.createStreamOnRead,
  }
}

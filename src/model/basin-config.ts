import {
  assertStreamConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type StreamReconfiguration,
} from './config.ts'
import { assertMembers, type MembersOf, oneOf, orNull } from './validation.ts'

const BASIN_CONFIG: MembersOf<BasinReconfiguration> = {
  // Its members are named without their path, like those of a stream's configuration.
  defaultStreamConfig: orNull((value) => assertStreamConfig(value as StreamReconfiguration)),
  streamCipher: orNull(oneOf(['aegis-256', 'aes-256-gcm'])),
  createStreamOnAppend: orNull('boolean'),
  createStreamOnRead: orNull('boolean'),
}

/** Throws `invalid` for a configuration of a basin, or a change of one, with an invalid member. */
export function assertBasinConfig(config: BasinConfigInput | BasinReconfiguration): void {
  assertMembers(config, BASIN_CONFIG, 'config')
}

import type { BasinReconfiguration } from '../../../src/model/config.ts'
import { basinChangeText } from '../../../src/wire/encode-resources.ts'
import { recordOf } from '../../../src/wire/response-json.ts'
import { responseArrayOf, textOfJson } from '../../../src/wire/response-members.ts'
import type { CallSender } from '../../client/call.ts'
import { creationOf } from '../../client/control-calls.ts'
import { jsonCall } from '../../client/json-call.ts'

/** Locations, which only the wire protocol has. */

/** The names of the locations of a server. */
export function locationsOf(sender: CallSender, signal: AbortSignal): Promise<string[]> {
  return sender.json(jsonCall('GET', '/locations', { signal }), (value) =>
    responseArrayOf(value, 'locations').map((location) =>
      textOfJson(recordOf(location, 'location').name, 'name'),
    ),
  )
}

/** Creates a basin, in the default location if none is given. */
export async function createBasinIn(
  location: string | undefined,
  sender: CallSender,
  basin: string,
  config: BasinReconfiguration,
): Promise<void> {
  const text = JSON.stringify({ basin, location, config: JSON.parse(basinChangeText(config)) })
  const vendor = { 'request-token': creationOf(undefined).header }
  await sender.send(jsonCall('POST', '/basins', { text, vendor }))
}

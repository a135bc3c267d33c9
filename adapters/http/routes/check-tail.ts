import { tailJson } from '../../../src/wire/json-position.ts'
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../router.ts'

/** The tail of a stream; takes no encryption key (wire-behaviour.md 5.11). */
export const checkTail: Endpoint = async (context) => {
  const basin = context.basinAddress()
  const stream = context.stream(basin, context.pathParameter('stream'))
  return jsonReply(tailJson(await stream.checkTail()))
}

import type { Provisioned } from '../../../src/model/info.ts'
import { jsonReply, type Reply } from '../reply.ts'
import type { RequestContext } from '../request-context.ts'

/** The answer to a creation: what exists now, and in a header what was done. */
export function provisionedReply<Info>(
  context: RequestContext,
  { result, info }: Provisioned<Info>,
  infoJson: (info: Info) => string,
  status: number,
): Reply {
  return jsonReply(infoJson(info), status, context.responseHeaders('provision-result', result))
}

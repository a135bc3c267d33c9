/// <reference path="../assets.d.ts" />
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

/** Describes the protocol to tools (docs/openapi.yaml). The document contains nothing of this server. */
export const openApi: Endpoint = async () => {
  // Few handlers are ever asked for it.
  const { default: document } = await import('../../../docs/openapi.yaml?json')
  return jsonReply(document)
}

import type { Engine } from '../../src/index.ts'
import { HttpCore } from '../http/core.ts'
import { type Methods, permitted } from '../http/methods.ts'
import type { Reply } from '../http/reply.ts'
import type { ApiRequest, Endpoint } from '../http/request.ts'
import { append } from './append.ts'
import { create } from './create.ts'
import { errorReplyOf } from './errors.ts'
import type { DurableStreamsSettings } from './options.ts'
import { streamRouter } from './paths.ts'
import { read } from './read.ts'
import { describedStream, descriptionHeaders } from './state.ts'

/** The protocol over HTTP without a runtime. Throws `invalid` unless `hw` is an engine. */
export function durableStreamsCore(hw: Engine, settings: DurableStreamsSettings): HttpCore {
  const methods: Methods = {
    GET: permitted(
      replying((request, caller) => read(request, caller, settings)),
      'read',
    ),
    HEAD: permitted(replying(head), 'check-tail', 'read', 'get-stream-config'),
    PUT: permitted(
      replying((request, caller, owner) => create(request, caller, owner, settings.root)),
      'create-stream',
    ),
    POST: permitted(replying(append), 'append'),
    DELETE: permitted(replying(remove), 'delete-stream'),
  }
  return new HttpCore(hw, settings.http, streamRouter(settings.basin, settings.root, methods))
}

/** Turns the errors of the protocol into replies. */
function replying(endpoint: Endpoint): Endpoint {
  return async (request, hw, owner) => {
    try {
      return await endpoint(request, hw, owner)
    } catch (error) {
      const reply = errorReplyOf(error, request.exchange.method)
      if (reply === undefined) throw error
      return reply
    }
  }
}

async function head(request: ApiRequest, hw: Engine): Promise<Reply> {
  const state = await describedStream(request.streamOf(hw), ['check-tail', 'read', 'get-stream-config'])
  return { status: 200, headers: { ...descriptionHeaders(state), 'cache-control': 'no-store' } }
}

async function remove(request: ApiRequest, hw: Engine): Promise<Reply> {
  await request.streamOf(hw).delete()
  return { status: 204 }
}

import type { Engine } from '../../src/index.ts'
import { HttpCore } from '../http/core.ts'
import type { Reply } from '../http/reply.ts'
import { type ApiRequest, type Methods, permitted } from '../http/request.ts'
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
    GET: permitted((request, caller) => read(request, caller, settings), 'read'),
    HEAD: permitted(head, 'check-tail', 'read', 'get-stream-config'),
    PUT: permitted(
      (request, caller, owner) => create(request, caller, owner, settings.root),
      'create-stream',
    ),
    POST: permitted(append, 'append'),
    DELETE: permitted(remove, 'delete-stream'),
  }
  const router = streamRouter(settings.basin, settings.root, methods)
  return new HttpCore(hw, settings.http, router, errorReplyOf)
}

async function head(request: ApiRequest, hw: Engine): Promise<Reply> {
  const state = await describedStream(request.streamOf(hw), ['check-tail', 'read', 'get-stream-config'])
  return { status: 200, headers: { ...descriptionHeaders(state), 'cache-control': 'no-store' } }
}

async function remove(request: ApiRequest, hw: Engine): Promise<Reply> {
  await request.streamOf(hw).delete()
  return { status: 204 }
}

import type { Engine } from '../../src/index.ts'
import { type EngineSource, HttpCore } from '../http/core.ts'
import type { Reply } from '../http/reply.ts'
import { type ApiRequest, type Methods, permitted } from '../http/request.ts'
import { literally, Router } from '../http/router.ts'
import { append } from './append.ts'
import { create } from './create.ts'
import { errorReplyOf } from './errors.ts'
import type { DurableStreamsSettings } from './options.ts'
import { read } from './read.ts'
import { describedStream, descriptionHeaders } from './state.ts'

/** The protocol over HTTP without a runtime. Throws `invalid` unless `hw` is an engine or opens one. */
export function durableStreamsCore(hw: EngineSource, settings: DurableStreamsSettings): HttpCore {
  const { root, basin, http } = settings
  const router: Router<Methods> = new Router([
    {
      pattern: `${root}/{stream}`,
      expression: streamsBelow(root),
      parameters: { basin },
      target: {
        GET: permitted((request, caller) => read(request, caller, settings), 'read'),
        HEAD: permitted(head, 'check-tail', 'read', 'get-stream-config'),
        PUT: permitted((request, caller) => create(request, caller, router), 'create-stream'),
        POST: permitted(append, 'append'),
        DELETE: permitted(remove, 'delete-stream'),
      },
    },
  ])
  return new HttpCore(hw, http, router, errorReplyOf)
}

async function head(request: ApiRequest, hw: Engine): Promise<Reply> {
  const state = await describedStream(request.streamOf(hw), ['check-tail', 'read', 'get-stream-config'])
  return { status: 200, headers: { ...descriptionHeaders(state), 'cache-control': 'no-store' } }
}

async function remove(request: ApiRequest, hw: Engine): Promise<Reply> {
  await request.streamOf(hw).delete()
  return { status: 204 }
}

/**
 * Matches the paths of streams: everything below `root`, slashes included, except the path that the protocol
 * reserves for subscriptions, which this server does not have.
 */
function streamsBelow(root: string): RegExp {
  return new RegExp(`^${literally(root)}/(?!(?:_|%5[fF]){2}[dD][sS](?:/|$))(?<stream>.+)$`)
}

import type { Engine } from '../../src/index.ts'
import { HttpCore } from '../http/core.ts'
import type { Reply } from '../http/reply.ts'
import { type ApiRequest, type Methods, permitted } from '../http/request.ts'
import type { RequestRouter } from '../http/router.ts'
import { append } from './append.ts'
import { create } from './create.ts'
import { errorReplyOf } from './errors.ts'
import type { DurableStreamsSettings } from './options.ts'
import { read } from './read.ts'
import { describedStream, descriptionHeaders } from './state.ts'

/**
 * The protocol over HTTP without a runtime. `hw` is an engine or the result of `openOnce`. Throws `invalid`
 * for anything else.
 */
export function durableStreamsCore(
  hw: Engine | (() => Promise<Engine>),
  settings: DurableStreamsSettings,
): HttpCore {
  const methods: Methods = {
    GET: permitted((request, caller) => read(request, caller, settings), 'read'),
    HEAD: permitted(head, 'check-tail', 'read', 'get-stream-config'),
    PUT: permitted(
      (request, caller) => create(request, caller, (path) => streamInPath(path, settings.root)),
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

/** The path that the protocol reserves for subscriptions: not a stream, although this server has none. */
const RESERVED = /^(_|%5f){2}ds(\/|$)/i

/** The name of a stream in a path, still percent-encoded; undefined if the path is not that of a stream. */
function streamInPath(path: string, root: string): string | undefined {
  if (!path.startsWith(`${root}/`)) return undefined
  const name = path.slice(root.length + 1)
  return name === '' || RESERVED.test(name) ? undefined : name
}

/**
 * Returns the same for a handler that is mounted at `prefix`, whether the framework has removed the prefix or
 * not.
 */
function streamInMountedPath(path: string, root: string, prefix: string): string | undefined {
  const isMounted = prefix !== '' && path.startsWith(`${prefix}/`)
  return (isMounted ? streamInPath(path.slice(prefix.length), root) : undefined) ?? streamInPath(path, root)
}

/** Finds the stream of a path: everything below `root`, slashes included. */
function streamRouter<Methods>(basin: string, root: string, target: Methods): RequestRouter<Methods> {
  const pattern = `${root}/{stream}`
  return {
    match(path, prefix) {
      const stream = streamInMountedPath(path, root, prefix)
      return stream === undefined ? undefined : { pattern, target, parameters: { basin, stream } }
    },
  }
}

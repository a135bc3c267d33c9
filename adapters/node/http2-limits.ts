import type { ServerHttp2Session, ServerOptions } from 'node:http2'
import { MAX_HEADER_BYTES } from './limits.ts'

const MIB = 1024 * 1024

/** What one stream may have in flight towards the server: more than a whole batch, which is 1 MiB and some framing. */
const STREAM_WINDOW_BYTES = 2 * MIB
/** What all streams of a connection together may have in flight towards the server. */
const CONNECTION_WINDOW_BYTES = 16 * MIB

export const HTTP2_OPTIONS: ServerOptions = {
  settings: {
    maxConcurrentStreams: 1_000,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxFrameSize: 2 * MIB,
    maxHeaderListSize: MAX_HEADER_BYTES,
    enablePush: false,
  },
  // In MiB. Beyond it, new streams are refused. Node's 10 would not hold one connection window.
  maxSessionMemory: 64,
}

/** What can be set only on a session that exists. */
export function widenConnectionWindow(session: ServerHttp2Session): void {
  if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
}

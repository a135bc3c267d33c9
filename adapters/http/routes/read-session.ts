import { type Compression, encodeTerminalFrame } from '../../../src/wire/frame.ts'
import { sessionCompressionOf } from '../../../src/wire/message.ts'
import { heartbeatFrame, readBatchFrame } from '../../../src/wire/proto-read.ts'
import { sessionContentType } from '../../../src/wire/words.ts'
import { emptyAtTail, type ReadRequest } from '../read-request.ts'
import { readStream, type SessionEncoding } from '../read-stream.ts'
import { type Reply, streamReply } from '../reply.ts'
import type { RequestContext } from '../request-context.ts'

/** A binary read session (wire-behaviour.md 6.5). It ends with the body; a terminal frame tells only of failures. */
export async function readSession(context: RequestContext, request: ReadRequest): Promise<Reply> {
  const options = { heartbeats: true, emptyAtTail: emptyAtTail(context) }
  const cursor = await request.stream.openRead(request.query, options)
  const encoding = frameEncoding(sessionCompressionOf(context.header('accept-encoding')))
  const body = readStream(cursor, encoding, context.request.signal, (error) => context.report(error))
  return streamReply(sessionContentType(context.word), body)
}

function frameEncoding(compression: Compression | undefined): SessionEncoding {
  return {
    event: (event) =>
      event.kind === 'heartbeat' ? heartbeatFrame(event.tail) : readBatchFrame(event.batch, compression),
    failure: ({ status, text }) => encodeTerminalFrame(status, text),
  }
}

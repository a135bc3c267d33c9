import type { AppendSession, Stream } from '../../../src/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import type { RejectingQuota } from '../../../src/runtime/quota.ts'
import { type Frame, FrameDecoder, messageOf } from '../../../src/wire/frame.ts'
import { sessionContentType } from '../../../src/wire/media-type.ts'
import { decodeAppendInput } from '../../../src/wire/proto-records.ts'
import { AckFrames } from '../ack-frames.ts'
import { type Reply, streamReply } from '../reply.ts'
import type { ApiRequest } from '../request.ts'

type Chunks = AsyncIterator<Uint8Array, undefined>

/**
 * Opens an append session: the reply begins once the stream is found, then inputs arrive while acks are sent.
 * Inputs are taken even if the reply is not read yet, because some runtimes send it only after the end of the
 * request.
 */
export async function appendSession(request: ApiRequest, stream: Stream): Promise<Reply> {
  const chunks = request.exchange.chunks()
  const session = await stream.appendSession()
  const acks = new AckFrames((error) => request.report(error))
  // Ends a session whose client is silent: the engine closes, or the access token is revoked.
  const failing = session.acks$.subscribe({
    error: (error: unknown) => {
      // Acks that are ready come first; those that are not would be too late.
      acks.end(error)
      void macrotask().then(() => acks.cut(error))
    },
  })
  void takeInputs(chunks, session, acks, request.settings.pendingBodies).finally(() => failing.unsubscribe())
  return streamReply(sessionContentType(request.headerPrefix), acks)
}

/**
 * Takes inputs until the client has sent everything or has left, or the session has failed. Never rejects.
 */
async function takeInputs(
  chunks: Chunks,
  session: AppendSession,
  acks: AckFrames,
  pendingBodies: RejectingQuota,
): Promise<void> {
  try {
    await takeFrames(chunks, session, acks, pendingBodies)
    acks.end()
  } catch (error) {
    acks.end(error)
  } finally {
    await acks.over
    await session.close().catch(() => {})
  }
}

async function takeFrames(
  chunks: Chunks,
  session: AppendSession,
  acks: AckFrames,
  pendingBodies: RejectingQuota,
): Promise<void> {
  // Also ends a pending `next`.
  void acks.over.then(() => chunks.return?.())
  const decoder = new FrameDecoder()
  let reserved = 0
  try {
    for (;;) {
      const chunk = await chunks.next().catch((reason: unknown) => {
        acks.abandon(reason)
        return undefined
      })
      if (chunk === undefined || acks.isOver) return
      if (chunk.done) break
      for (const frame of decoder.decode(chunk.value)) {
        const { inputs, conditions } = await inputOf(frame)
        await acks.room()
        if (acks.isOver) return
        const submitting = session.submit(inputs, conditions)
        // The session has encoded or copied the bytes.
        decoder.reclaim()
        acks.add(await submitting)
      }
      pendingBodies.acquire(decoder.heldBytes - reserved)
      reserved = decoder.heldBytes
    }
    decoder.end()
  } finally {
    pendingBodies.release(reserved)
  }
}

async function inputOf(frame: Frame) {
  if (frame.kind === 'terminal') {
    throw new HeadwaterError('bad_frame', 'a client must not send a terminal frame')
  }
  return decodeAppendInput(await messageOf(frame), 'bad_frame')
}

import { onAbort } from '../../../src/engine/abort.ts'
import { macrotask } from '../../../src/engine/macrotask.ts'
import type { AppendSession, Stream } from '../../../src/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { type Frame, FrameDecoder } from '../../../src/wire/frame.ts'
import { messageOf } from '../../../src/wire/message.ts'
import { decodeAppendInput } from '../../../src/wire/proto-append.ts'
import { sessionContentType } from '../../../src/wire/words.ts'
import { AckStream } from '../ack-stream.ts'
import { HeldBytes } from '../held-bytes.ts'
import { type Reply, streamReply } from '../reply.ts'
import { unreadBody } from '../request-body.ts'
import type { RequestContext } from '../request-context.ts'

/**
 * A binary append session (wire-behaviour.md 3.9): answers once the stream is found, then takes inputs and gives acks at the same time.
 * The inputs are taken whether or not the response is read, for a runtime may send it only when the request has ended.
 */
export async function appendSession(context: RequestContext, stream: Stream): Promise<Reply> {
  const body = unreadBody(context.request)
  const session = await stream.appendSession()
  const acks = new AckStream((error) => context.report(error))
  const { signal } = context.request
  const ignoreAbort = onAbort(signal, () => acks.abandon(signal.reason))
  // Also what ends it while the client is silent: the engine closes, the access token is revoked.
  const failing = session.acks$.subscribe({
    error: (error: unknown) => {
      // The acks that are there go first; those that are not by now don't come in time.
      acks.end(error)
      void macrotask().then(() => acks.cut(error))
    },
  })
  const held = new HeldBytes(context.settings.bodies)
  void takeInputs(body, session, acks, held).finally(() => {
    held.release()
    ignoreAbort()
    failing.unsubscribe()
  })
  return streamReply(sessionContentType(context.word), acks.body)
}

/** Runs until the client has sent everything, the session has failed, or the client has left. Never rejects. */
async function takeInputs(
  body: ReadableStream<Uint8Array> | null,
  session: AppendSession,
  acks: AckStream,
  held: HeldBytes,
): Promise<void> {
  try {
    if (body !== null) await takeFrames(body, session, acks, held)
    acks.end()
  } catch (error) {
    acks.end(error)
  } finally {
    await acks.over
    await session.close().catch(() => {})
  }
}

async function takeFrames(
  body: ReadableStream<Uint8Array>,
  session: AppendSession,
  acks: AckStream,
  held: HeldBytes,
): Promise<void> {
  const reader = body.getReader()
  // What is over wants no more input, and must not wait for some either.
  void acks.over.then(() => reader.cancel()).catch(() => {})
  const decoder = new FrameDecoder()
  for (;;) {
    const chunk = await reader.read().catch((reason: unknown) => {
      acks.abandon(reason)
      return undefined
    })
    if (chunk === undefined || acks.isOver) return
    if (chunk.done) break
    for (const frame of decoder.decode(chunk.value)) {
      const { inputs, conditions } = await inputOf(frame)
      await acks.room()
      if (acks.isOver) return
      acks.add(await session.submit(inputs, conditions))
    }
    held.set(decoder.heldBytes)
  }
  decoder.end()
}

async function inputOf(frame: Frame) {
  if (frame.kind === 'terminal') {
    throw new HeadwaterError('bad_frame', 'a client must not send a terminal frame')
  }
  return decodeAppendInput(await messageOf(frame), 'bad_frame')
}

import { afterEach, expect } from 'vitest'
import type { Stream } from '../../../../src/index.ts'
import { type AccessEngine, openWithTokens, outcome } from './support.ts'

const engines: AccessEngine[] = []

/** Closes everything, and checks that no timer is left. */
export function closeAfterEach(): void {
  afterEach(async () => {
    const started = engines.splice(0)
    for (const { hw } of started) await hw.close()
    for (const { clock } of started) expect(clock.pending).toBe(0)
  })
}

export async function start(options: Parameters<typeof openWithTokens>[0] = {}): Promise<AccessEngine> {
  const engine = await openWithTokens(options)
  engines.push(engine)
  return engine
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items) {
    // Results before the end do not matter.
  }
}

/** An input that never comes. */
function idle(): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }
}

/** Each opens an idle session, and settles when the session ends. */
const SESSIONS: Readonly<Record<string, (stream: Stream, signal: AbortSignal) => Promise<unknown>>> = {
  'for await': (stream, signal) => drain(stream.follow({}, { signal })),
  events: (stream, signal) => drain(stream.follow({}, { signal }).events()),
  observable: (stream, signal) =>
    new Promise<void>((complete, error) => {
      stream.follow({}, { as: 'bytes', signal }).records$.subscribe({ complete, error })
    }),
  cursor: async (stream) => {
    const cursor = (await stream.openCursor({}, {}))!
    while ((await cursor.next()) !== undefined);
  },
  'long poll': (stream, signal) => stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal }),
  'append session': async (stream, signal) => {
    const session = await stream.appendSession({ signal })
    await new Promise<void>((complete, error) => session.acks$.subscribe({ complete, error }))
  },
  appendAll: (stream, signal) => drain(stream.appendAll(idle(), { signal })),
}

export const SESSION_NAMES = Object.keys(SESSIONS)

/** Opens a session on a stream; adds its outcome to `ends`: `ok` or the code of an error. */
export function openSession(name: string, stream: Stream): { ends: string[]; signal: AbortSignal } {
  const { signal } = new AbortController()
  const ends: string[] = []
  void outcome(SESSIONS[name]!(stream, signal)).then((end) => ends.push(end))
  return { ends, signal }
}

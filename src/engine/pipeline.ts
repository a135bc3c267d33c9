import type { AppendAck } from '../model/info.ts'
import { onAbort } from './abort.ts'
import type { AppendSession, AppendTicket } from './append-session.ts'

/** How many acks may be owed before no more input is taken in. */
const OWED_MAX = 1_000

/**
 * Submits what the source gives to a session and yields the acks in order, each as soon as it is there. When an input is refused, the acks
 * owed for those before it are yielded first. It can be ended while its source is idle, which an async generator function can't: there
 * `return()` lines up behind the pending `next()`.
 */
export function pipeline<Input>(
  source: AsyncIterable<Input> | Iterable<Input>,
  open: () => Promise<AppendSession>,
  submit: (session: AppendSession, input: Input) => Promise<AppendTicket>,
  endings: readonly (AbortSignal | undefined)[],
): AsyncGenerator<AppendAck, void, undefined> {
  const left = new AbortController()
  const acks = run(source, open, submit, [...endings, left.signal])
  const leave = async (): Promise<IteratorResult<AppendAck, void>> => {
    left.abort(LEFT)
    await acks.return().catch(() => {})
    return { done: true, value: undefined }
  }
  return {
    next: async () => {
      try {
        return await acks.next()
      } catch (error) {
        if (error === LEFT) return { done: true, value: undefined }
        throw error
      }
    },
    return: leave,
    throw: async (error) => {
      await leave()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
    [Symbol.asyncDispose]: async () => void (await leave()),
  }
}

/** The reason of a consumer that has enough. */
const LEFT = new Error('left')

async function* run<Input>(
  source: AsyncIterable<Input> | Iterable<Input>,
  open: () => Promise<AppendSession>,
  submit: (session: AppendSession, input: Input) => Promise<AppendTicket>,
  endings: readonly (AbortSignal | undefined)[],
): AsyncGenerator<AppendAck, void, undefined> {
  const ignores: (() => void)[] = []
  const ended = new Promise<never>((_, reject) => {
    for (const signal of endings) if (signal) ignores.push(onAbort(signal, () => reject(signal.reason)))
  })
  ended.catch(() => {})
  const inputs = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  let exhausted = false
  let session: AppendSession | undefined
  let failure: { readonly error: unknown } | undefined
  try {
    session = await open()
    const sessionEnded: Promise<'done'> = new Promise<'done'>((resolve) => {
      const failed = (error: unknown) => {
        failure ??= { error }
        resolve('done')
      }
      // What ends it while the source is idle; by then every ack that it owes is there.
      const subscription = session!.acks$.subscribe({ error: failed })
      ignores.push(() => subscription.unsubscribe())
    })
    const owed: Promise<AppendAck>[] = []
    let submitting: Promise<'submitted' | 'done'> | undefined
    let done = false
    const submitNext = async (to: AppendSession) => {
      try {
        const input = await inputs.next()
        exhausted = input.done === true
        if (input.done) return 'done'
        owed.push((await submit(to, input.value)).ack())
        return 'submitted'
      } catch (error) {
        failure ??= { error }
        return 'done'
      }
    }
    while (!done || owed.length > 0) {
      if (!done && owed.length < OWED_MAX) submitting ??= submitNext(session)
      const first = owed[0]?.then(() => 'acked' as const)
      const over: Promise<'done'> | undefined = done ? undefined : sessionEnded
      const winner: 'acked' | 'submitted' | 'done' = await Promise.race(
        [ended, first, submitting, over].filter((one) => one !== undefined),
      )
      if (winner === 'acked') yield await owed.shift()!
      else {
        submitting = undefined
        done = winner === 'done'
      }
    }
    if (failure !== undefined) throw failure.error
  } finally {
    for (const ignore of ignores) ignore()
    // Not awaited: a source that waits for its next value would not let go before it has come.
    if (!exhausted) Promise.resolve(inputs.return?.()).catch(() => {})
    await session?.close().catch(() => {})
  }
}

import type { AppendAck } from '../model/info.ts'
import { onAbort } from './abort.ts'
import type { AppendSession, AppendTicket } from './append-session.ts'

/** How many acks may be owed before no more input is taken in. */
const OWED_MAX = 1_000

/**
 * Submits what the source gives to a session and yields the acks in order, each as soon as it is there. When an input is refused, the acks
 * owed for those before it are yielded first. Each of the signals ends it with its reason, also while the source is idle.
 */
export async function* pipelined<Input>(
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

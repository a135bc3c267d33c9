import type { AppendAck } from '../model/info.ts'
import type { AppendTicket } from './append-session.ts'

/** How many acks may be owed before no more input is taken in. */
const OWED_MAX = 1_000

/**
 * Submits what the source gives and yields the acks in order, each as soon as it is there. When an input is refused, the acks owed for
 * those before it are yielded first.
 */
export async function* pipeline<Input>(
  source: AsyncIterable<Input> | Iterable<Input>,
  submit: (input: Input) => Promise<AppendTicket>,
): AsyncGenerator<AppendAck, void, undefined> {
  const inputs = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  const owed: Promise<AppendAck>[] = []
  let submitting: Promise<'submitted' | 'ended'> | undefined
  let ended = false
  let exhausted = false
  let failure: { readonly error: unknown } | undefined
  const submitNext = async () => {
    try {
      const input = await inputs.next()
      exhausted = input.done === true
      if (input.done) return 'ended'
      owed.push((await submit(input.value)).ack())
      return 'submitted'
    } catch (error) {
      failure = { error }
      return 'ended'
    }
  }
  try {
    while (!ended || owed.length > 0) {
      if (!ended && owed.length < OWED_MAX) submitting ??= submitNext()
      const first = owed[0]?.then(() => 'acked' as const)
      const winner = await Promise.race([first, submitting].filter((one) => one !== undefined))
      if (winner === 'acked') yield await owed.shift()!
      else {
        submitting = undefined
        ended = winner === 'ended'
      }
    }
    if (failure !== undefined) throw failure.error
  } finally {
    // Not awaited: a source that waits for its next value would not let go before it has come.
    if (!exhausted) Promise.resolve(inputs.return?.()).catch(() => {})
  }
}

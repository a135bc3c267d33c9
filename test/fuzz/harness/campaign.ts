import type { Failure, Message, Orders, Played } from './messages.ts'
import { type Ending, runChild } from './supervised-child.ts'

export interface CampaignReport {
  /** By the name of the decoder. */
  readonly played: ReadonlyMap<string, Played>
  readonly failures: readonly Failure[]
}

/** Without anything heard for so long, a child hangs. */
const SILENCE_MS_MAX = 60_000
/** Of what a slow decoder gets, a fraction of a second. */
const STRIDE = 200

/**
 * Runs the program, a child that plays the orders, and again for the decoders behind one that it did not survive. Memory is scarce there, and it is watched: what explodes
 * or never ends is a failure like others.
 */
export async function campaign(
  program: string,
  orders: Pick<Orders, 'seed' | 'corpus' | 'plan'> & { readonly from?: number },
  { silenceMs = SILENCE_MS_MAX }: { readonly silenceMs?: number } = {},
): Promise<CampaignReport> {
  const played = new Map<string, Played>()
  const failures: Failure[] = []
  const listen = (message: Message): void => {
    if (message.kind === 'failed') failures.push(message.failure)
    if (message.kind === 'done') played.set(message.target, message)
  }
  let { plan, from = 0 } = orders
  while (plan.length > 0) {
    const ending = await runChild(program, { ...orders, plan, from, stride: STRIDE }, silenceMs, listen)
    if (ending.kind === 'end') break
    const { target } = ending.at ?? { target: plan[0]!.target }
    failures.push(await located(program, orders, target, ending, silenceMs))
    plan = plan.slice(plan.findIndex((one) => one.target === target) + 1)
    from = 0
  }
  return { played, failures }
}

/** Which input it was: the child is run once more from where it was heard last, and tells of each. */
async function located(
  program: string,
  { seed, corpus }: Pick<Orders, 'seed' | 'corpus'>,
  target: string,
  { problem, at }: Extract<Ending, { kind: 'broken' }>,
  silenceMs: number,
): Promise<Failure> {
  if (at === undefined) return { target, problem }
  const plan = [{ target, inputs: at.index + STRIDE }]
  const again = await runChild(
    program,
    { seed, corpus, plan, from: at.index, stride: 1 },
    silenceMs,
    () => {},
  )
  if (again.kind === 'broken' && again.at !== undefined)
    return { target, index: again.at.index, problem: again.problem }
  return {
    target,
    problem: `${problem}, between inputs ${at.index} and ${at.index + STRIDE}, but not when these are tried alone`,
  }
}

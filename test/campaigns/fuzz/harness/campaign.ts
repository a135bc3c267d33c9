import { runChild } from '../../harness/run-child.ts'
import type { ChildParameters, Failure, Message, Played } from './messages.ts'
import type { AnyTarget } from './target.ts'

export interface CampaignReport {
  /** Results by the name of the decoder. */
  readonly played: ReadonlyMap<string, Played>
  readonly failures: readonly Failure[]
}

/** A child that prints nothing for this long hangs. */
const SILENCE_MS_MAX = 60_000
const START_MS_MAX = 120_000
/** A decoder that allocates without bound must fail. */
const HEAP_MIB_MAX = 256
/**
 * The number of inputs that a child decodes between two messages: a fraction of a second for the slowest
 * decoder.
 */
const STRIDE = 200
const SHARE = 10

/** Distributes at least `inputs` inputs among the decoders. */
export function planOf(targets: readonly AnyTarget[], inputs: number): ChildParameters['plan'] {
  const shares = targets.map(({ share = SHARE }) => share)
  const all = shares.reduce((sum, share) => sum + share, 0)
  return targets.map(({ name }, i) => ({ target: name, inputs: Math.ceil((inputs * shares[i]!) / all) }))
}

/** The limits of a child. */
interface Limits {
  readonly silenceMs?: number | undefined
  readonly heapMiB?: number | undefined
}

export interface CampaignOptions extends Limits {
  readonly onPlayed?: (played: Played) => void
}

/**
 * Runs the plan in a child with little memory. If a decoder kills the child, another child continues with the
 * next decoder.
 */
export async function campaign(
  program: string,
  parameters: Pick<ChildParameters, 'seed' | 'corpus' | 'plan'> & { readonly from?: number },
  { onPlayed, ...limits }: CampaignOptions = {},
): Promise<CampaignReport> {
  const played = new Map<string, Played>()
  const failures: Failure[] = []
  const listen = (message: Message): void => {
    if (message.kind === 'failed') failures.push(message.failure)
    if (message.kind !== 'done') return
    played.set(message.target, message)
    onPlayed?.(message)
  }
  let { plan, from = 0 } = parameters
  while (plan.length > 0) {
    const ending = await playInChild(program, { ...parameters, plan, from, stride: STRIDE }, limits, listen)
    if (ending.kind === 'ended') break
    const { target } = ending.at ?? { target: plan[0]!.target }
    failures.push(await located(program, parameters, target, ending, limits))
    plan = plan.slice(plan.findIndex((step) => step.target === target) + 1)
    from = 0
  }
  return { played, failures }
}

type Place = Pick<Extract<Message, { kind: 'at' }>, 'target' | 'index'>

type Ending =
  | { readonly kind: 'ended' }
  /** `at` is the last position that the child reported. */
  | { readonly kind: 'failed'; readonly problem: string; readonly at: Place | undefined }

async function playInChild(
  program: string,
  parameters: ChildParameters,
  { silenceMs = SILENCE_MS_MAX, heapMiB = HEAP_MIB_MAX }: Limits,
  listen: (message: Message) => void,
): Promise<Ending> {
  let at: Place | undefined
  let hasEnded = false
  const ending = await runChild(program, {
    nodeOptions: ['--expose-gc', `--max-old-space-size=${heapMiB}`],
    parameters,
    silenceMs,
    startMs: START_MS_MAX,
    onLine(line) {
      const message: Message = JSON.parse(line)
      if (message.kind === 'at') at = message
      if (message.kind === 'end') hasEnded = true
      listen(message)
    },
  })
  if (ending.kind === 'failed') return { ...ending, at }
  return hasEnded ? ending : { kind: 'failed', problem: 'exits before it has tried all inputs', at }
}

/** Finds the input: another child starts at the last reported position and reports each input. */
async function located(
  program: string,
  { seed, corpus }: Pick<ChildParameters, 'seed' | 'corpus'>,
  target: string,
  { problem, at }: Extract<Ending, { kind: 'failed' }>,
  limits: Limits,
): Promise<Failure> {
  if (at === undefined) return { target, problem }
  const plan = [{ target, inputs: at.index + STRIDE }]
  const parameters = { seed, corpus, plan, from: at.index, stride: 1 }
  const retried = await playInChild(program, parameters, limits, () => {})
  if (retried.kind === 'failed' && retried.at !== undefined)
    return { target, index: retried.at.index, problem: retried.problem }
  return {
    target,
    problem: `${problem}, between inputs ${at.index} and ${at.index + STRIDE}, but not when only these are played`,
  }
}

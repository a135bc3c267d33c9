import { writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { utf8 } from '../../../../src/model/bytes.ts'
import { crc32 } from '../../../../src/wire/codec-gzip.ts'
import { orders as ordersOfChild } from '../../harness/run-child.ts'
import { countAllocations } from './allocations.ts'
import { type Case, Cases } from './cases.ts'
import { check } from './check.ts'
import { foundCases, writtenInput } from './corpus.ts'
import type { Failure, Message, Orders, Played } from './messages.ts'
import { smallest } from './smallest.ts'
import type { AnyTarget, Input } from './target.ts'

/** A decoder may permanently keep this much: loaded modules and tables. */
const KEPT_BYTES_MAX = 48 * 1024 * 1024

const STACK_FRAMES = 20

/** The main function of a child. */
export async function playAsChild(targets: readonly AnyTarget[]): Promise<void> {
  countAllocations()
  // Written synchronously: a pending message would be lost if the process dies, and it names the position.
  await play(targets, ordersOfChild(), (message) => writeSync(1, `${JSON.stringify(message)}\n`))
}

/** Passes the inputs to each decoder in turn. A decoder that fails gets no more inputs. */
async function play(
  targets: readonly AnyTarget[],
  orders: Orders,
  tell: (message: Message) => void,
): Promise<void> {
  // Most inputs are rejected, and capturing a stack trace takes longer than decoding.
  Error.stackTraceLimit = 0
  for (const [i, { target: name, inputs }] of orders.plan.entries()) {
    const target = targets.find((one) => one.name === name)
    if (target === undefined) throw new RangeError(`there is no decoder ${name}`)
    const kept = await keptBytes()
    const cases = await Cases.of(target, orders.seed, foundCases(orders.corpus, name))
    const played = await playOne(target, cases, { from: i === 0 ? orders.from : 0, to: inputs }, orders, tell)
    const more = (await keptBytes()) - kept
    if (more > KEPT_BYTES_MAX)
      tell({ kind: 'failed', failure: { target: name, problem: `it keeps ${more} bytes for good` } })
    tell({ kind: 'done', target: name, ...played })
  }
  tell({ kind: 'end' })
}

async function playOne(
  target: AnyTarget,
  cases: Cases,
  { from, to }: { readonly from: number; readonly to: number },
  { stride }: Orders,
  tell: (message: Message) => void,
): Promise<Played> {
  const { name } = target
  let digest = 0
  for (let index = from; index < to; index++) {
    if ((index - from) % stride === 0) tell({ kind: 'at', target: name, index })
    const one = cases.at(index)
    const { input } = one
    digest = crc32(typeof input === 'string' ? utf8(input) : input, digest)
    const error = await failureOf(target, one)
    if (error === undefined) continue
    const failure = await described(target, one, error)
    tell({ kind: 'failed', failure: { target: name, index, ...failure } })
    return { inputs: index + 1 - from, digest }
  }
  return { inputs: Math.max(to - from, 0), digest }
}

/** Returns the failure, or undefined. */
async function failureOf(target: AnyTarget, { input, says }: Case): Promise<unknown> {
  try {
    await check(target, input, says)
    return pollution()
  } catch (error) {
    return error
  }
}

/** Decoding must not change the prototype that all objects share. */
function pollution(): unknown {
  for (const name in {}) {
    Reflect.deleteProperty(Object.prototype, name)
    return new Error(`every object has a member ${name} now`)
  }
  return undefined
}

async function described(
  target: AnyTarget,
  one: Case,
  found: unknown,
): Promise<Pick<Failure, 'input' | 'problem'>> {
  const fails = async (input: Input) => kindOf(await failureOf(target, { input })) === kindOf(found)
  // A reduced input would no longer match its model.
  const least = one.says === undefined ? { input: await smallest(one.input, fails) } : one
  // Repeated to capture the stack trace.
  Error.stackTraceLimit = STACK_FRAMES
  const error = (await failureOf(target, least)) ?? found
  Error.stackTraceLimit = 0
  const problem = inspect(error, { depth: 4 })
  return {
    input: writtenInput(least.input),
    problem: one.why === undefined ? problem : `${one.why}: ${problem}`,
  }
}

/** Two failures of the same kind count as one. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const message = error.message.replaceAll(/[0-9]+/g, '0').slice(0, 60)
  return `${error.name} ${message}${error.cause === undefined ? '' : ` ${kindOf(error.cause)}`}`
}

async function keptBytes(): Promise<number> {
  const { gc } = globalThis
  if (gc === undefined) return 0
  gc()
  // The memory of buffers is released, and counted, only after a turn and another collection.
  await setImmediate()
  gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

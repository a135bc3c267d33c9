import { writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { utf8 } from '../../../../src/model/bytes.ts'
import { crc32 } from '../../../../src/wire/codecs.ts'
import { parametersOfChild } from '../../harness/run-child.ts'
import { countAllocations } from './allocations.ts'
import { type Case, Cases, foundCases, writtenInput } from './cases.ts'
import { check } from './check.ts'
import type { ChildParameters, Failure, Message, Played } from './messages.ts'
import { smallest } from './smallest.ts'
import type { AnyTarget, Input } from './target.ts'

/** A decoder may permanently keep this much: loaded modules and tables. */
const KEPT_BYTES_MAX = 48 * 1024 * 1024

const STACK_FRAMES = 20

/** The main function of a child. */
export async function playAsChild(targets: readonly AnyTarget[]): Promise<void> {
  countAllocations()
  // Written synchronously: a pending message would be lost if the process dies, and it names the position.
  await runTargets(targets, parametersOfChild(), (message) => writeSync(1, `${JSON.stringify(message)}\n`))
}

/** Passes the inputs to each decoder in turn. A decoder that fails gets no more inputs. */
async function runTargets(
  targets: readonly AnyTarget[],
  parameters: ChildParameters,
  send: (message: Message) => void,
): Promise<void> {
  // Most inputs are rejected, and capturing a stack trace takes longer than decoding.
  Error.stackTraceLimit = 0
  for (const [i, { target: name, inputs }] of parameters.plan.entries()) {
    const target = targets.find((candidate) => candidate.name === name)
    if (target === undefined) throw new RangeError(`there is no decoder ${name}`)
    const retainedBefore = await retainedBytes()
    const cases = await Cases.of(target, parameters.seed, foundCases(parameters.corpus, name))
    const played = await runTarget(
      target,
      cases,
      { from: i === 0 ? parameters.from : 0, to: inputs },
      parameters,
      send,
    )
    const more = (await retainedBytes()) - retainedBefore
    if (more > KEPT_BYTES_MAX)
      send({ kind: 'failed', failure: { target: name, problem: `it keeps ${more} bytes for good` } })
    send({ kind: 'done', target: name, ...played })
  }
  send({ kind: 'end' })
}

async function runTarget(
  target: AnyTarget,
  cases: Cases,
  { from, to }: { readonly from: number; readonly to: number },
  { stride }: ChildParameters,
  send: (message: Message) => void,
): Promise<Played> {
  const { name } = target
  let digest = 0
  for (let index = from; index < to; index++) {
    if ((index - from) % stride === 0) send({ kind: 'at', target: name, index })
    const testCase = cases.at(index)
    const { input } = testCase
    digest = crc32(typeof input === 'string' ? utf8(input) : input, digest)
    const error = await failureOf(target, testCase)
    if (error === undefined) continue
    const failure = await described(target, testCase, error)
    send({ kind: 'failed', failure: { target: name, index, ...failure } })
    return { inputs: index + 1 - from, digest }
  }
  return { inputs: Math.max(to - from, 0), digest }
}

/** Returns the failure, or undefined. */
async function failureOf(target: AnyTarget, { input, expected }: Case): Promise<unknown> {
  try {
    await check(target, input, expected)
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
  testCase: Case,
  found: unknown,
): Promise<Pick<Failure, 'input' | 'problem'>> {
  const fails = async (input: Input) => kindOf(await failureOf(target, { input })) === kindOf(found)
  // A reduced input would no longer match its model.
  const least = testCase.expected === undefined ? { input: await smallest(testCase.input, fails) } : testCase
  // Repeated to capture the stack trace.
  Error.stackTraceLimit = STACK_FRAMES
  const error = (await failureOf(target, least)) ?? found
  Error.stackTraceLimit = 0
  const problem = inspect(error, { depth: 4 })
  return {
    input: writtenInput(least.input),
    problem: testCase.reason === undefined ? problem : `${testCase.reason}: ${problem}`,
  }
}

/** Two failures of the same kind count as one. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const message = error.message.replaceAll(/[0-9]+/g, '0').slice(0, 60)
  return `${error.name} ${message}${error.cause === undefined ? '' : ` ${kindOf(error.cause)}`}`
}

async function retainedBytes(): Promise<number> {
  const { gc } = globalThis
  if (gc === undefined) return 0
  gc()
  // The memory of buffers is released, and counted, only after a turn and another collection.
  await setImmediate()
  gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

import { allocatedBytes } from './allocations.ts'
import { equal } from './assertions.ts'
import { type AnyTarget, type Input, MEMORY } from './target.ts'

/** An error that repeats its input could fill a log. */
const MESSAGE_CHARACTERS_MAX = 2000

/**
 * Passes the input to the decoder. Rejects unless it keeps its promises: a verified value or a documented
 * error, and no more memory than permitted. A valid input must decode to its model.
 */
export async function check(
  target: AnyTarget,
  input: Input,
  expected?: { readonly model: unknown },
): Promise<void> {
  const before = allocatedBytes()
  let value: unknown
  try {
    value = await target.decode(input)
  } catch (error) {
    checkAllocated(target, input, before)
    if (expected !== undefined) throw new Error('it refuses a valid input', { cause: error })
    checkError(target, error)
    return
  }
  checkAllocated(target, input, before)
  const bound = boundOf(target, input)
  const weight = weightOf(value)
  if (weight > bound) throw new Error(`the value holds ${weight} bytes, more than ${bound}`)
  if (expected !== undefined && target.means !== undefined) {
    equal(value, target.means(expected.model), 'what is read of a valid input')
  }
  await target.verify?.(value, input)
}

function checkError(target: AnyTarget, error: unknown): void {
  if (!target.refuses(error)) throw new Error('it throws what it should not', { cause: error })
  const { length } = (error as Error).message
  if (length === 0 || length > MESSAGE_CHARACTERS_MAX) throw new Error(`the message has ${length} characters`)
}

function checkAllocated(target: AnyTarget, input: Input, before: number): void {
  const bytes = allocatedBytes() - before
  const bound = boundOf(target, input)
  if (bytes > bound) throw new Error(`it asks for ${bytes} bytes of memory, more than ${bound}`)
}

function boundOf({ memory = MEMORY }: AnyTarget, input: Input): number {
  return memory.beside + memory.perInputByte * input.length
}

const OBJECT_BYTES = 16
const REFERENCE_BYTES = 8

/** The approximate size of a value in bytes. Shared objects are counted each time. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length * 2
  if (typeof value !== 'object' || value === null) return 0
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength
  let bytes = OBJECT_BYTES
  if (value instanceof Map || Array.isArray(value)) {
    for (const item of value) bytes += REFERENCE_BYTES + weightOf(item)
    return bytes
  }
  for (const member of Object.values(value)) bytes += REFERENCE_BYTES + weightOf(member)
  return bytes
}

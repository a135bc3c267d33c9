import { type Outcome, settledOutcomeOf } from './outcomes.ts'

/**
 * Calls a decoder and counts the bytes of each `new Uint8Array(length)` and each new `Buffer` meanwhile.
 * Unlike the memory in use, this is the same in each run. The decoder notices no difference.
 */
export async function allocatedDuring<Value>(
  call: () => Value | Promise<Value>,
): Promise<{ readonly outcome: Outcome<Value>; readonly bytes: number }> {
  let bytes = 0
  const { Uint8Array: real } = globalThis
  const counted = new Proxy(real, {
    construct(target, args, newTarget) {
      const made: Uint8Array = Reflect.construct(target, args, newTarget === counted ? target : newTarget)
      // A view allocates nothing.
      if (!(args[0] instanceof ArrayBuffer)) bytes += made.length
      return made
    },
  })
  const { alloc, allocUnsafe, allocUnsafeSlow, concat } = Buffer
  const originals = { alloc, allocUnsafe, allocUnsafeSlow, concat }
  globalThis.Uint8Array = counted
  for (const [name, make] of Object.entries(originals) as [string, (...args: unknown[]) => Buffer][]) {
    Object.assign(Buffer, {
      [name]: (...args: unknown[]) => {
        const made = make(...args)
        bytes += made.length
        return made
      },
    })
  }
  try {
    const outcome = await settledOutcomeOf(async () => call())
    return { outcome, bytes }
  } finally {
    globalThis.Uint8Array = real
    Object.assign(Buffer, originals)
  }
}

const OBJECT_BYTES = 16
const REFERENCE_BYTES = 8

/** The approximate size of a value. Shared objects are counted each time. */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return value.length * 2
  if (typeof value !== 'object' || value === null) return 0
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength
  const members = value instanceof Map ? [...value] : Object.values(value)
  return members.reduce((sum, member) => sum + REFERENCE_BYTES + heldBytes(member), OBJECT_BYTES)
}

let bytes = 0

/** The bytes of typed arrays and buffers allocated since {@link countAllocations}; 0 before. */
export function allocatedBytes(): number {
  return bytes
}

/**
 * Counts each `new Uint8Array(length)` and each new `Buffer` from now on. Unlike the memory in use, this is
 * the same in each run. Callers notice no difference.
 */
export function countAllocations(): void {
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, args, newTarget) {
      const made: Uint8Array = Reflect.construct(target, args, newTarget === proxied() ? target : newTarget)
      // A view allocates nothing.
      if (!(args[0] instanceof ArrayBuffer)) bytes += made.length
      return made
    },
  })
  for (const name of ['alloc', 'allocUnsafe', 'allocUnsafeSlow', 'concat'] as const) {
    const make = Buffer[name] as (...args: unknown[]) => Buffer
    Object.assign(Buffer, {
      [name]: (...args: unknown[]) => {
        const made = make(...args)
        bytes += made.length
        return made
      },
    })
  }
}

function proxied(): unknown {
  return globalThis.Uint8Array
}

let bytes = 0

/** How many bytes of typed arrays and buffers were asked for since {@link countAllocations}; stays 0 before. */
export function allocatedBytes(): number {
  return bytes
}

/**
 * From now on each `new Uint8Array(length)` and each new `Buffer` is counted: unlike what is in use at some moment, that is the same in each run. It makes no difference
 * to whoever calls them.
 */
export function countAllocations(): void {
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, args, newTarget) {
      const made: Uint8Array = Reflect.construct(target, args, newTarget === proxied() ? target : newTarget)
      // A view asks for nothing.
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

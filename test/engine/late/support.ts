/** A load that comes, or fails, when the test says so. */
export interface HeldLoad<Part> {
  readonly promise: Promise<Part>
  readonly come: (part: Part) => void
  readonly fail: (cause: unknown) => void
}

export function heldLoad<Part>(): HeldLoad<Part> {
  let come!: (part: Part) => void
  let fail!: (cause: unknown) => void
  const promise = new Promise<Part>((resolve, reject) => {
    come = resolve
    fail = reject
  })
  return { promise, come, fail }
}

/** A function of a module, to be called elsewhere. */
export interface Call {
  readonly path: string
  readonly name: string
  readonly args: readonly unknown[]
}

export type Outcome = { readonly result: unknown } | { readonly error: string }

/** Calls in a dedicated worker that lives no longer than the call. */
export async function call(request: Call): Promise<unknown> {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
  try {
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Outcome>) => resolve(data)
      worker.onerror = ({ message }) => reject(new Error(message || 'the worker did not start'))
      worker.postMessage(request)
    })
    if ('error' in outcome) throw new Error(outcome.error)
    return outcome.result
  } finally {
    worker.terminate()
  }
}

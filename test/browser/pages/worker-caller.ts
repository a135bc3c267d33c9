/** A call of a function of a module. */
export interface Call {
  readonly path: string
  readonly name: string
  readonly args: readonly unknown[]
}

export type Outcome = { readonly result: unknown } | { readonly error: string }

let worker: Worker | undefined
let calls: Promise<unknown> = Promise.resolve()

/** Calls in the worker of this page, one at a time. */
export function call(request: Call): Promise<unknown> {
  worker ??= new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
  const calling = worker
  const called = calls.then(() => callIn(calling, request))
  calls = called.catch(() => {})
  return called
}

async function callIn(worker: Worker, request: Call): Promise<unknown> {
  const outcome = await new Promise<Outcome>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Outcome>) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message || 'the worker did not start'))
    worker.postMessage(request)
  })
  if ('error' in outcome) throw new Error(outcome.error)
  return outcome.result
}

/** A call of a function of a module. */
export interface Call {
  readonly path: string
  readonly name: string
  readonly args: readonly unknown[]
}

export type Outcome = { readonly result: unknown } | { readonly error: string }

/** Calls in a new worker that is terminated afterwards. */
export async function call(request: Call): Promise<unknown> {
  const worker = startWorker()
  try {
    return await callIn(worker, request)
  } finally {
    worker.terminate()
  }
}

let kept: Worker | undefined
let calls: Promise<unknown> = Promise.resolve()

/** Calls in a worker that is kept for later calls, one at a time. */
export function callKept(request: Call): Promise<unknown> {
  kept ??= startWorker()
  const worker = kept
  const called = calls.then(() => callIn(worker, request))
  calls = called.catch(() => {})
  return called
}

function startWorker(): Worker {
  return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
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

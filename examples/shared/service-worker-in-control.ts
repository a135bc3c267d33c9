/**
 * Registers `service-worker.js` and resolves when it answers what this page fetches. Rejects where there are no service workers: on pages that are
 * neither `https` nor `localhost`, and in some private windows; and where it cannot be installed, because a file of the app is missing or there is no space.
 */
export async function serviceWorkerInControl(): Promise<void> {
  const { serviceWorker } = navigator
  if (serviceWorker === undefined)
    throw new Error('this page has no service workers: it needs https or localhost')
  const { installing } = await serviceWorker.register('service-worker.js')
  const { active } = await Promise.race([serviceWorker.ready, failureOf(installing)])
  if (serviceWorker.controller !== null) return
  const inControl = new Promise<void>((resolve) => {
    serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true })
  })
  active?.postMessage('claim')
  await inControl
}

/** Rejects when the service worker cannot be installed: one that is not there is never ready. */
function failureOf(worker: ServiceWorker | null): Promise<never> {
  return new Promise((_, reject) => {
    worker?.addEventListener('statechange', () => {
      if (worker.state === 'redundant') reject(new Error('the service worker could not be installed'))
    })
  })
}

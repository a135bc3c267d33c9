/**
 * Registers `service-worker.js` and resolves when it controls this page. Rejects without service workers (on
 * pages that are neither `https` nor `localhost`, and in some private windows), and if the installation
 * fails, because a file of the app is missing or there is no space.
 */
export async function serviceWorkerInControl(): Promise<void> {
  const { serviceWorker } = navigator
  if (serviceWorker === undefined)
    throw new Error('service workers are not available; they need https or localhost')
  const { installing } = await serviceWorker.register('service-worker.js')
  const { active } = await Promise.race([serviceWorker.ready, failureOf(installing)])
  if (serviceWorker.controller !== null) return
  const inControl = new Promise<void>((resolve) => {
    serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true })
  })
  active?.postMessage('claim')
  await inControl
}

/** Rejects if the installation fails; `ready` would then never resolve. */
function failureOf(worker: ServiceWorker | null): Promise<never> {
  return new Promise((_, reject) => {
    worker?.addEventListener('statechange', () => {
      if (worker.state === 'redundant') reject(new Error('the service worker could not be installed'))
    })
  })
}

/**
 * Registers `service-worker.js` and resolves when it answers what this page fetches. Rejects where there are no service workers: on pages that are
 * neither `https` nor `localhost`, and in some private windows.
 */
export async function serviceWorkerInControl(): Promise<void> {
  const { serviceWorker } = navigator
  if (serviceWorker === undefined)
    throw new Error('this page has no service workers: it needs https or localhost')
  await serviceWorker.register('service-worker.js')
  const { active } = await serviceWorker.ready
  if (serviceWorker.controller !== null) return
  const inControl = new Promise<void>((resolve) => {
    serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true })
  })
  active?.postMessage('claim')
  await inControl
}

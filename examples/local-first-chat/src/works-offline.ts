import { serviceWorkerInControl } from '../../shared/service-worker-in-control.ts'
import { element } from './template.ts'

/** Installs the service worker that stores the page, and says whether it works without a network. */
export function worksOffline(): void {
  const status = element('network')
  serviceWorkerInControl().then(
    () => {
      status.title = 'This page works without a network too.'
    },
    (error: unknown) => {
      status.title = `This page needs a network to be loaded. ${error}`
    },
  )
}

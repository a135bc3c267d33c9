import { fromEvent, merge, startWith } from 'rxjs'
import { serviceWorkerInControl } from '../../shared/service-worker-in-control.ts'
import { element } from './template.ts'

/** Shows whether the browser is online, and installs the service worker that makes the page work offline. */
export function showNetwork(): void {
  const status = element('network')
  merge(fromEvent(window, 'online'), fromEvent(window, 'offline'))
    .pipe(startWith(undefined))
    .subscribe(() => {
      status.textContent = navigator.onLine ? 'Online' : 'Offline'
      status.classList.toggle('offline', !navigator.onLine)
    })
  serviceWorkerInControl().then(
    () => {
      status.title = 'This page works without a network too.'
      status.classList.add('ready')
    },
    (error: unknown) => {
      status.title = `This page needs a network to be loaded. ${error}`
    },
  )
}

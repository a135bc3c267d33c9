import { append } from './endpoints/append.ts'
import { CONTROL_PLANE_ROUTES } from './endpoints/control-plane.ts'
import { MONITORING_ROUTES } from './endpoints/monitoring.ts'
import { pageRoutes } from './endpoints/page.ts'
import { checkTail, read } from './endpoints/read.ts'
import type { HandlerSettings } from './options.ts'
import { type Methods, permitted } from './request.ts'
import { type Route, Router } from './router.ts'

/** Every endpoint (docs/protocol.md "Endpoints"). */
export const ROUTES: readonly Route<Methods>[] = [
  ...MONITORING_ROUTES,
  ...CONTROL_PLANE_ROUTES,
  {
    pattern: '/v1/streams/{stream}/records',
    target: { GET: permitted(read, 'read'), POST: permitted(append, 'append') },
  },
  { pattern: '/v1/streams/{stream}/records/tail', target: { GET: permitted(checkTail, 'check-tail') } },
]

/** Finds the endpoints of the wire protocol, and the page of the handler. */
export function protocolRouter({ page }: HandlerSettings): Router<Methods> {
  return new Router(page === undefined ? ROUTES : [...ROUTES, ...pageRoutes(page)])
}

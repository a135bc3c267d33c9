import type { RequestExchange } from './exchange.ts'
import { type Reply, rejection } from './reply.ts'

/** Returns the name in a `host` header: in lower case, without the port and a final dot. */
export function hostNameOf(host: string): string {
  return host.toLowerCase().replace(/\.?(:\d*)?$/, '')
}

/**
 * Returns the rejection of a request to a host that is neither local nor allowed. Without authentication, a
 * web page could otherwise use a server on the machine of its visitor: it has the name of its own host
 * resolve to a loopback address (DNS rebinding), and counts as being of the same origin.
 */
export function hostRejection(
  exchange: RequestExchange,
  hosts: readonly string[],
  domains: readonly string[],
): Reply | undefined {
  const name = hostNameOf(exchange.host)
  // What most tests and tools use.
  if (name === 'localhost') return undefined
  // An address is not resolved, and browsers resolve localhost themselves.
  if (/^(\[.*\]|[\d.]+)$/.test(name) || hosts.includes(name)) return undefined
  if (['localhost', ...domains].some((domain) => `.${name}`.endsWith(`.${domain}`))) return undefined
  return rejection(
    421,
    'misdirected_request',
    `this server does not serve the host \`${name.slice(0, NAME_LENGTH_MAX)}\`; ` +
      'allow it with the option `allowedHosts`, or `--allowed-host` of `headwater serve`',
  )
}

/** The longest name that DNS has. */
const NAME_LENGTH_MAX = 253

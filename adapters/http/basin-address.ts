import { HeadwaterError } from '../../src/model/errors.ts'
import { basinNameProblem } from '../../src/model/names.ts'
import { wordOfRequest } from '../../src/wire/vendor-headers.ts'
import { vendorHeaderName } from '../../src/wire/words.ts'
import { headerText, invalidHeader } from './header-text.ts'
import type { Settings } from './options.ts'

/**
 * The basin that a request is addressed to, by subdomain, by the header `svc-basin` (wire-behaviour.md 1.1), or by default. Throws 400
 * `bad_header` when there is none, when its name breaks the rules, and when the two differ (rulings.md "Words on the wire").
 */
export function basinAddress(request: Request, settings: Settings): string {
  const bySubdomain = subdomain(new URL(request.url).hostname, settings.basinDomains)
  const byHeader = headerText(request.headers, 'basin', settings.words)
  const name = vendorHeaderName(wordOfRequest(request.headers, settings.words), 'basin')
  const basin = byHeader ?? bySubdomain ?? settings.basin
  if (basin === undefined) {
    throw new HeadwaterError('bad_header', `Missing header \`${name}\``, { field: name })
  }
  const problem = basinNameProblem(basin)
  if (problem !== undefined) throw invalidHeader(byHeader === undefined ? 'host' : name, problem)
  if (bySubdomain !== undefined && bySubdomain !== basin) {
    // Its own rules first: what is no name is not repeated, however long it is.
    const hostProblem = basinNameProblem(bySubdomain)
    throw hostProblem === undefined
      ? invalidHeader(name, `the host is that of basin \`${bySubdomain}\``)
      : invalidHeader('host', hostProblem)
  }
  return basin
}

/** The one label before one of the domains. */
function subdomain(hostname: string, domains: readonly string[]): string | undefined {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  for (const domain of domains) {
    if (!host.endsWith(`.${domain}`)) continue
    const label = host.slice(0, -domain.length - 1)
    if (!label.includes('.')) return label
  }
  return undefined
}

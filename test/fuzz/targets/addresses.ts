import fc from 'fast-check'
import { basinAddress } from '../../../adapters/http/basin-address.ts'
import { settingsOf } from '../../../adapters/http/options.ts'
import { pathParameter } from '../../../adapters/http/path-parameter.ts'
import { Router } from '../../../adapters/http/router.ts'
import { ROUTES } from '../../../adapters/http/routes/index.ts'
import { accessTokenIdProblem } from '../../../src/model/access.ts'
import { basinNameProblem, streamNameProblem } from '../../../src/model/names.ts'
import { equal, ok } from '../harness/equal.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { basinName, streamName } from '../models.ts'

const ROUTER = new Router(ROUTES)
const PROBLEMS = { basin: basinNameProblem, stream: streamNameProblem, id: accessTokenIdProblem }

/** A path as a URL has it, and what its segments are. */
export const paths = target({
  name: 'paths',
  models: fc.tuple(fc.constantFrom(...ROUTES.map(({ pattern }) => pattern)), basinName, streamName),
  encode: ([pattern, basin, stream]) =>
    pattern.replace('{basin}', basin).replace('{stream}', encodeURIComponent(stream)).replace('{id}', 'id'),
  decode(input: string) {
    const { pathname } = new URL(`http://localhost${input.startsWith('/') ? '' : '/'}${input}`)
    const match = ROUTER.match(pathname, '/mounted')
    const names = match === undefined ? [] : [...match.parameters.keys()]
    return {
      pattern: match?.route.pattern,
      names: names.map((name) => [name, pathParameter(match!, name)] as const),
    }
  },
  refuses: (error) => headwaterError('bad_path')(error) || isBadUrl(error),
  verify({ names }) {
    for (const [name, value] of names) {
      const problem = PROBLEMS[name as keyof typeof PROBLEMS](value)
      ok(problem === undefined, `the ${name} of a path: ${problem}`)
    }
  },
  words: [
    '/',
    '//',
    '/v1',
    '/streams',
    '/records',
    '/tail',
    '/mounted',
    '%2F',
    '%2e',
    '%',
    '%00',
    '%ff',
    '?',
    '#',
    '\\',
  ],
  share: 20,
})

/** The platform's, for what no request can have for an address. */
function isBadUrl(error: unknown): boolean {
  return error instanceof TypeError && (error as { code?: unknown }).code === 'ERR_INVALID_URL'
}

const SETTINGS = settingsOf({ open: true, basinDomains: ['localhost', 'streams.example.com'] })

/** The basin that a request is addressed to: host and header, a line each. */
export const basinAddresses = target({
  name: 'basin-addresses',
  models: fc.oneof(
    basinName.map((basin) => `${basin}.localhost:8080\n`),
    basinName.map((basin) => `localhost\n${basin}`),
    basinName.map((basin) => `${basin}.streams.example.com\n${basin}`),
  ),
  encode: (address) => address,
  decode(input: string) {
    const [host, ...header] = input.split('\n')
    return basinAddress(requestTo(`http://${host}/v1/streams`, header.join('\n')), SETTINGS)
  },
  refuses: (error) => headwaterError('bad_header')(error) || isBadUrl(error),
  verify: (basin) => equal(basinNameProblem(basin), undefined, 'what is wrong with the name'),
  words: ['.localhost', '.streams.example.com', '.', ':80', '@', '\n', 'A', '%41', '[::1]', 'xn--', '\u3002'],
})

function requestTo(url: string, basin: string): Request {
  const headers = { get: (name: string) => (name === 'svc-basin' && basin !== '' ? basin : null) }
  return { url, headers } as unknown as Request
}

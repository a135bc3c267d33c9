import fc from 'fast-check'
import type { RequestExchange } from '../../../../adapters/http/exchange.ts'
import { handlerSettings } from '../../../../adapters/http/options.ts'
import { ApiRequest } from '../../../../adapters/http/request.ts'
import { Router } from '../../../../adapters/http/router.ts'
import { ROUTES } from '../../../../adapters/http/routes.ts'
import { accessTokenIdProblem } from '../../../../src/model/access.ts'
import { basinNameProblem, streamNameProblem } from '../../../../src/model/names.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { basinName, streamName } from '../models.ts'

const ROUTER = new Router(ROUTES)
type Match = NonNullable<ReturnType<typeof ROUTER.match>>
const SETTINGS = handlerSettings({ auth: 'none', basinDomains: ['localhost', 'streams.example.com'] })
const PROBLEMS = { basin: basinNameProblem, stream: streamNameProblem, id: accessTokenIdProblem }

/** A path as in a URL, with its decoded segments. */
export const paths = target({
  name: 'paths',
  models: fc.tuple(fc.constantFrom(...ROUTES.map(({ pattern }) => pattern)), basinName, streamName),
  encode: ([pattern, basin, stream]) =>
    pattern.replace('{basin}', basin).replace('{stream}', encodeURIComponent(stream)).replace('{id}', 'id'),
  decode(input: string) {
    const { pathname } = new URL(`http://localhost${input.startsWith('/') ? '' : '/'}${input}`)
    const match = ROUTER.match(pathname, '/mounted')
    const names = match === undefined ? [] : Object.keys(match.parameters)
    return {
      pattern: match?.pattern,
      names: names.map((name) => [name, nameIn(match!, name)] as const),
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

function nameIn(match: Match, name: string): string {
  const request = new ApiRequest(exchangeTo('http://localhost/', ''), match, SETTINGS)
  return name === 'basin' ? request.basin : name === 'stream' ? request.stream : request.tokenId
}

/** The error of the platform for an invalid address. */
function isBadUrl(error: unknown): boolean {
  return error instanceof TypeError && (error as { code?: unknown }).code === 'ERR_INVALID_URL'
}

/** Finds the basin of a request from its host and header, one per line. */
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
    const exchange = exchangeTo(`http://${host}/v1/streams`, header.join('\n'))
    return new ApiRequest(exchange, ROUTER.match('/v1/streams', '')!, SETTINGS).basin
  },
  refuses: (error) => headwaterError('bad_header')(error) || isBadUrl(error),
  verify: (basin) => equal(basinNameProblem(basin), undefined, 'what is wrong with the name'),
  words: ['.localhost', '.streams.example.com', '.', ':80', '@', '\n', 'A', '%41', '[::1]', 'xn--', '\u3002'],
})

function exchangeTo(url: string, basin: string): RequestExchange {
  const header = (name: string) => (name === 'svc-basin' && basin !== '' ? basin : undefined)
  return { hostname: new URL(url).hostname, header } as RequestExchange
}

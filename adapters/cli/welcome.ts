import { isIP } from 'node:net'
import { ROOT_TOKEN_VARIABLE, type RootToken } from './root-token.ts'

export interface WelcomeFacts {
  readonly url: string
  /** A line about the storage. */
  readonly storage: string
  /** Whether tokens are demanded, and where the root token comes from. */
  readonly access: 'open' | RootToken
}

/** What `headwater serve` prints when it is ready. Every line that begins with `curl` works as it stands. */
export function welcome({ url, storage, access }: WelcomeFacts): string[] {
  const authorization = authorizationOption(access)
  const json = `-H 'content-type: application/json'`
  const basin = `-H 'svc-basin: my-basin'`
  const records = `${url}/v1/streams/greetings/records`
  return [
    `headwater serves ${url}`,
    `Storage: ${storage}`,
    `Health:  ${url}/health`,
    ...accessLines(access),
    '',
    'Create a basin, append a record, read it back:',
    '',
    `curl -X PUT ${url}/v1/basins/my-basin${authorization} ${json} -d '{"config":{"create_stream_on_append":true}}'`,
    `curl ${records}${authorization} ${basin} ${json} -d '{"records":[{"body":"hello"}]}'`,
    `curl '${records}?seq_num=0'${authorization} ${basin}`,
    '',
    'Press Ctrl+C to stop.',
  ]
}

export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

function authorizationOption(access: WelcomeFacts['access']): string {
  if (access === 'open') return ''
  if (access.source === 'new') return ` -H 'authorization: Bearer ${access.token}'`
  return ` -H "authorization: Bearer $${ROOT_TOKEN_VARIABLE}"`
}

function accessLines(access: WelcomeFacts['access']): string[] {
  if (access === 'open') return ['Access:  whoever can connect may do everything (--open)']
  const heading = 'Access:  by token; `headwater token issue --help` says how to issue one'
  switch (access.source) {
    case 'new':
      return [
        heading,
        '',
        `Root token: ${access.token}`,
        '',
        'It permits everything and is shown only now: keep it. A request carries it as `Authorization: Bearer TOKEN`, the command',
        `\`headwater token\` takes it from ${ROOT_TOKEN_VARIABLE}, published clients from S2_ACCESS_TOKEN.`,
      ]
    case 'environment':
      return [heading, `Root token: that of ${ROOT_TOKEN_VARIABLE}`]
    case 'option':
      return [
        heading,
        `Root token: that of --root-token. For the lines below, export it as ${ROOT_TOKEN_VARIABLE}`,
      ]
    case 'stored':
      return [
        heading,
        `Root token: this storage has one. For the lines below, export it as ${ROOT_TOKEN_VARIABLE}`,
        `If it is lost, start again with ${ROOT_TOKEN_VARIABLE} set to another, which replaces it`,
      ]
  }
}

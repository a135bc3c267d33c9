import { OPERATIONS } from '../../src/model/operations.ts'

/** Where the tokens are. */
const PLACE_DEFINITIONS = {
  url: { type: 'string', description: 'Address of the service. Default: http://127.0.0.1:8787' },
  token: { type: 'string', description: 'Access token to call the service with: see below' },
  dir: { type: 'string', description: 'Directory of a storage to work on instead of a service: see below' },
  json: { type: 'boolean', default: false, description: 'Print JSON' },
} as const

export const PLACE_NOTES = [
  'The service is called with the token of --token, HEADWATER_TOKEN or HEADWATER_ROOT_TOKEN, whichever comes first. Other users of the machine',
  'can see an option in the list of processes: prefer the environment variables. --dir works as the owner of a storage, without a token, while',
  'no server has it open.',
]

export const ISSUE_DEFINITIONS = {
  id: { type: 'positional', description: 'Name of the new token, 1 to 96 bytes, unique' },
  basins: {
    type: 'string',
    description: 'Basins that it reaches: NAME, PREFIX* or * for all. Default: none',
  },
  streams: { type: 'string', description: 'Streams that it reaches in these basins, in the same way' },
  'access-tokens': {
    type: 'string',
    description: 'Access tokens that it may list, issue and revoke, by id, in the same way',
  },
  ops: { type: 'string', description: 'Operations that it permits, as in read,append,check-tail' },
  'op-groups': {
    type: 'string',
    description: 'Groups of them, as in account:read,basin:read+write,stream:read',
  },
  scope: { type: 'string', description: 'The scope as JSON instead of these five options: see below' },
  'expires-in': { type: 'string', description: 'How long it is valid: 90s, 15m, 24h, 30d' },
  'expires-at': { type: 'string', description: 'Until when it is valid, as in 2030-01-31T12:00:00Z' },
  'auto-prefix': {
    type: 'boolean',
    default: false,
    description: 'Put the prefix of --streams before every stream name in its requests',
  },
  ...PLACE_DEFINITIONS,
} as const

export const ISSUE_NOTES = [
  'Standard output is the token and nothing else: TOKEN=$(headwater token issue ci --basins "ci-*" --streams "*" --op-groups stream:read+write)',
  'A * at the end of --basins, --streams and --access-tokens stands for any text; quote it. Names that really end in * need --scope, which takes',
  'what the API takes: {"basins":{"exact":"a"},"streams":{"prefix":"s/"},"ops":["read"],"op_groups":{"account":{"read":true}}}',
  'Groups are of the levels account, basin and stream. By default a token is valid as long as the one that issues it.',
  `Operations: ${OPERATIONS.slice(0, 8).join(' ')}`,
  OPERATIONS.slice(8, 18).join(' '),
  OPERATIONS.slice(18).join(' '),
  '',
  ...PLACE_NOTES,
]

export const LIST_DEFINITIONS = {
  prefix: { type: 'string', description: 'Only tokens whose ids begin so' },
  ...PLACE_DEFINITIONS,
} as const

export const REVOKE_DEFINITIONS = {
  id: { type: 'positional', description: 'Id of the token; any number of them' },
  ...PLACE_DEFINITIONS,
} as const

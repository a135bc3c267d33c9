import fc from 'fast-check'
import type { CliContext } from '../../../adapters/cli/cli-context.ts'
import { issueRequest } from '../../../adapters/cli/issue-request.ts'
import { printable, shown } from '../../../adapters/cli/printable.ts'
import {
  operationGroups,
  operationGroupsText,
  resourceSet,
  resourceSetText,
} from '../../../adapters/cli/scope-options.ts'
import { parseServeArguments } from '../../../adapters/cli/serve-arguments.ts'
import type { StorageKind } from '../../../adapters/cli/storages.ts'
import {
  parseIssueArguments,
  parseListArguments,
  parseRevokeArguments,
} from '../../../adapters/cli/token-arguments.ts'
import { parseExportArguments, parseImportArguments } from '../../../adapters/cli/transfer-arguments.ts'
import { parseVerifyArguments } from '../../../adapters/cli/verify-arguments.ts'
import { equal, ok } from '../harness/equal.ts'
import { nothing, usageError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { text } from '../models.ts'

const CONTEXT = { env: {}, clock: { now: () => Date.UTC(2030, 0, 1) } } as unknown as CliContext
const STORAGES = [
  { name: 'memory', takesDirectory: false },
  { name: 'filesystem', takesDirectory: true },
] as unknown as readonly StorageKind[]

/** By their first word; each has its own options. */
const COMMANDS: Readonly<Record<string, (args: readonly string[]) => unknown>> = {
  serve: (args) => parseServeArguments(args, STORAGES),
  export: (args) => parseExportArguments(args, CONTEXT),
  import: (args) => parseImportArguments(args, CONTEXT),
  verify: parseVerifyArguments,
  issue: (args) => parseIssueArguments(args, CONTEXT),
  list: (args) => parseListArguments(args, CONTEXT),
  revoke: (args) => parseRevokeArguments(args, CONTEXT),
}

const VALID = [
  'serve --port 80 --host ::1 --storage filesystem --dir data --open',
  'serve --root-token=0123456789abcdef',
  'export --out file.gz --dir data --basin a* --stream s --resume',
  'export --url http://localhost:1 --token abc --quiet',
  'import file --dir data --encryption-key AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
  'import - --url https://example.com/x/v1',
  'verify data --json',
  'issue ci --basins ci-* --streams * --op-groups stream:read+write,basin:read --expires-in 30d',
  'issue ci --ops read,append --streams a/* --auto-prefix --expires-at 2031-01-01T00:00:00Z',
  'issue ci --scope {"ops":["read"],"basins":{"exact":"a"}}',
  'list --prefix a --json',
  'revoke a b c',
]

/** Arguments that are separated by spaces. */
export const argumentLists = target({
  name: 'arguments',
  models: fc.constantFrom(...VALID),
  encode: (line) => line,
  decode(input: string) {
    const [command = '', ...args] = input.split(' ')
    return Object.hasOwn(COMMANDS, command) ? COMMANDS[command]!(args) : undefined
  },
  refuses: usageError,
  memory: { perInputByte: 400, beside: 20_000 },
  words: [
    ...[
      'serve',
      'export',
      'import',
      'verify',
      'issue',
      'list',
      'revoke',
      ' ',
      ' -- ',
      ' - ',
      ' --',
      ' -x',
      '=',
    ],
    ...[
      ' --no-open',
      ' --open=false',
      ' --json=true',
      ' --port=',
      ' --dir ',
      ' --url ',
      ' --basin ',
      ' --token ',
    ],
    ...['--__proto__', '--constructor', '--out -', 'http://[', 'http://u:p@h', 'file:///x', '*', '--prefix='],
  ],
  share: 20,
})

/** Scopes as they are typed. */
export const typedScopes = target({
  name: 'typed-scopes',
  models: fc.constantFrom('account:read', 'basin:read+write,stream:write', 'a*', '*', 'my-basin', 'a/b'),
  encode: (typed) => typed,
  decode: (input: string) =>
    input.includes(':') ? { groups: operationGroups(input) } : { set: resourceSet('streams', input) },
  refuses: usageError,
  verify(value) {
    if ('set' in value) {
      const again = resourceSetText(value.set)
      if (!again.startsWith('{'))
        equal(resourceSet('streams', again), value.set, 'the set, written and read again')
      return
    }
    const groups = operationGroupsText(value.groups).join(',')
    equal(operationGroups(groups), value.groups, 'the groups, written and read again')
  },
  words: ['account:', 'basin:', 'stream:', 'read', 'write', '+', ',', '*', ' ', '__proto__:read'],
})

/** A scope that is typed as JSON. */
export const typedScopeJson = target({
  name: 'typed-scope-json',
  models: fc.constantFrom(
    '{"ops":["read"]}',
    '{"op_groups":{"stream":{"read":true}},"basins":{"prefix":""}}',
  ),
  encode: (typed) => typed,
  decode: (input: string) => issueRequest({ ...NO_OPTIONS, scope: input }, 0).input,
  refuses: usageError,
  words: ['"ops":', '"op_groups":', '"basins":', '"exact":', '"prefix":', '"id":', '}', '{', ',', '"scope":'],
})

const NO_OPTIONS = {
  id: 'ci',
  basins: undefined,
  streams: undefined,
  accessTokens: undefined,
  ops: undefined,
  opGroups: undefined,
  expiresIn: undefined,
  expiresAt: undefined,
  autoPrefix: false,
}

/** Text from elsewhere, as a terminal gets it. */
export const printableText = target({
  name: 'printable',
  models: text,
  encode: (of) => of,
  decode: (input: string) => [printable(input), shown(input)],
  refuses: nothing,
  verify(texts) {
    for (const of of texts) ok(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(of), 'a terminal would obey it')
  },
  words: ['\x1b[2J', '\u009b', '\u202e', '\u2066', '\u{e0001}', '\r', '\u00ad'],
})

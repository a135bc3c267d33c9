import fc from 'fast-check'
import type { CliCommand } from '../../../../adapters/cli/command.ts'
import { HEADWATER } from '../../../../adapters/cli/commands.ts'
import type { CliContext } from '../../../../adapters/cli/context.ts'
import { printable, quoteArg } from '../../../../adapters/cli/errors.ts'
import {
  issuedToken,
  operationGroups,
  operationGroupsText,
  resourceSet,
  resourceSetText,
} from '../../../../adapters/cli/token-scope.ts'
import { equal, ok } from '../harness/assertions.ts'
import { nothing, usageError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { text } from '../models.ts'

const CONTEXT = {
  env: { HEADWATER_BASIN: 'app' },
  clock: { now: () => Date.UTC(2030, 0, 1) },
} as unknown as CliContext

/** Every command that has arguments, by its words. */
const COMMANDS = new Map(await commandsOf(await HEADWATER.load()))

async function commandsOf(group: CliCommand): Promise<[string, CliCommand][]> {
  const nested = (group.commands ?? []).map(async ({ name, load }): Promise<[string, CliCommand][]> => {
    const command = await load()
    if (command.commands === undefined) return [[name, command]]
    const below = await commandsOf(command)
    return below.map(([sub, command]) => [`${name} ${sub}`, command])
  })
  return (await Promise.all(nested)).flat()
}

const VALID = [
  'serve --port 80 --host ::1 --storage ./data --no-auth',
  'serve --root-token=0123456789abcdef',
  'export --out file.gz --dir data --basin a* --stream s --resume',
  'export --url http://localhost:1 --token abc --quiet',
  'export --storage file:./data',
  'import file --dir data --encryption-key AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
  'import - --url https://example.com/x/v1',
  'verify data --json',
  'token issue ci --basins ci-* --streams * --op-groups stream:read+write,basin:read --expires-in 30d',
  'token issue ci --ops read,append --streams a/* --auto-prefix --expires-at 2031-01-01T00:00:00Z',
  'token issue ci --scope {"ops":["read"],"basins":{"exact":"a"}}',
  'token list --prefix a --json',
  'token revoke a b c',
  'append app/web/1 text --header level:info --header a:b --no-create',
  'append /web --file big.log --storage ./data --quiet',
  'append app/web --json --base64 --fencing-token t',
  'append app/web %i-%r{5}-%n{9}\\n --count 5 --rate 2.5 --skip-empty',
  'read app/web --format %o%h{a}%s{.a[0].b}\\x41 --grep a.b -i --header a=b --commands',
  'tail app/web --select .user."any"[-1] -n 3',
  'read app/web --seq-num 5 --count 10 --bytes 100 --until 15m -f',
  'read app/web --timestamp 2031-01-01T00:00:00Z --json --base64',
  'tail -n 5 -f app/web --url http://localhost:1',
  'ls app/prefix -l',
  'ls --prefix ap --json',
  'create app/web --retention 7d --storage-class standard --timestamping arrival --uncapped true',
  'create app --cipher none --create-on-append true --delete-on-empty 1h',
  'config app/web --config {"storage_class":"standard"}',
  'delete app/web app /web',
  'fence app/web token --match-seq-num 7',
  'trim app/web 100 --json',
  'check-tail app/web',
  'metrics app-logs --set storage,read-ops --start 7d --interval day',
  'bench app --records 10 --size 5 --batch 3',
  'completion fish',
]

/** Arguments separated by spaces. */
export const argumentLists = target({
  name: 'arguments',
  models: fc.constantFrom(...VALID),
  encode: (line) => line,
  decode(input: string) {
    const words = input.split(' ')
    const length = COMMANDS.has(words[0]!) ? 1 : 2
    const name = words.slice(0, length).join(' ')
    return COMMANDS.get(name)?.parse?.(words.slice(length), CONTEXT, name)
  },
  refuses: usageError,
  memory: { perInputByte: 400, beside: 20_000 },
  words: [
    ...[
      'serve',
      'export',
      'import',
      'verify',
      'token ',
      'issue',
      'list',
      'revoke',
      'append',
      'read',
      'tail',
      'config',
      'metrics',
      ' ',
      ' -- ',
      ' - ',
      ' --',
      ' -x',
      '=',
    ],
    ...[
      ' --no-auth',
      ' --auth=false',
      ' --json=true',
      ' --port=',
      ' --dir ',
      ' --url ',
      ' --basin ',
      ' --token ',
      ' --header ',
      ' -n ',
      ' -f',
      ' --config ',
      ' --until ',
    ],
    ...['--__proto__', '--constructor', '--out -', 'http://[', 'http://u:p@h', 'file:///x', '*', '--prefix='],
  ],
  share: 20,
})

/** Scopes as typed on the command line. */
export const typedScopes = target({
  name: 'typed-scopes',
  models: fc.constantFrom('account:read', 'basin:read+write,stream:write', 'a*', '*', 'my-basin', 'a/b'),
  encode: (typed) => typed,
  decode: (input: string) =>
    input.includes(':') ? { groups: operationGroups(input) } : { set: resourceSet('streams', input) },
  refuses: usageError,
  verify(value) {
    if ('set' in value) {
      const text = resourceSetText(value.set)
      if (!text.startsWith('{'))
        equal(resourceSet('streams', text), value.set, 'the set, written and read again')
      return
    }
    const groups = operationGroupsText(value.groups).join(',')
    equal(operationGroups(groups), value.groups, 'the groups, written and read again')
  },
  words: ['account:', 'basin:', 'stream:', 'read', 'write', '+', ',', '*', ' ', '__proto__:read'],
})

/** A scope typed as JSON. */
export const typedScopeJson = target({
  name: 'typed-scope-json',
  models: fc.constantFrom(
    '{"ops":["read"]}',
    '{"op_groups":{"stream":{"read":true}},"basins":{"prefix":""}}',
  ),
  encode: (typed) => typed,
  decode: (input: string) => issuedToken({ ...NO_OPTIONS, scope: input }, 0),
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

/** Untrusted text as printed on a terminal. */
export const printableText = target({
  name: 'printable',
  models: text,
  encode: (of) => of,
  decode: (input: string) => [printable(input), quoteArg(input)],
  refuses: nothing,
  verify(texts) {
    for (const of of texts) ok(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(of), 'a terminal would obey it')
  },
  words: ['\x1b[2J', '\u009b', '\u202e', '\u2066', '\u{e0001}', '\r', '\u00ad'],
})

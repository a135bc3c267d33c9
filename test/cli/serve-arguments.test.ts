import { describe, expect, it } from 'vitest'
import { parseServeArguments } from '../../adapters/cli/commands/serve.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { counted, resultOf, testStorages } from './run.ts'

const HELP = 'see `headwater serve --help`'
const PORT = '`--port` must be a number from 0 to 65535'
const LOCATIONS =
  'expected `memory`, a directory such as `./data`, or a URL such as `file:./data` or `postgres://localhost/app`'

describe('headwater serve', () => {
  it.each([
    [['80'], `unexpected argument \`80\`: \`serve\` accepts only options; ${HELP}`],
    [['--', '80'], `unexpected argument \`80\`: \`serve\` accepts only options; ${HELP}`],
    [[''], `unexpected argument \`\`: \`serve\` accepts only options; ${HELP}`],
    [['--prot', '80'], `unknown option \`--prot\`; did you mean \`--port\`? S${HELP.slice(1)}`],
    [['--prot=80'], `unknown option \`--prot\`; did you mean \`--port\`? S${HELP.slice(1)}`],
    [['--no-port'], `unknown option \`--no-port\`; ${HELP}`],
    [['--open'], `unknown option \`--open\`; ${HELP}`],
    [
      ['--rootToken', 'x'],
      `unknown option \`--rootToken\`; did you mean \`--root-token\`? S${HELP.slice(1)}`,
    ],
    [['--__proto__', 'x'], `unknown option \`--__proto__\`; ${HELP}`],
    [['--constructor=x'], `unknown option \`--constructor\`; ${HELP}`],
    [['-p', '80'], `unknown option \`-p\`; ${HELP}`],
    [['-'], `unexpected argument \`-\`: \`serve\` accepts only options; ${HELP}`],
    [['--port'], `\`--port\` requires a value; ${HELP}`],
    [
      ['--port', '--no-auth'],
      `\`--port\` requires a value; write one that begins with a hyphen as \`--port=-x\`; ${HELP}`,
    ],
    [['--port', '1', '--port', '2'], `\`--port\` is given twice; ${HELP}`],
    [['--auth', '--no-auth'], `\`--auth\` is given twice; ${HELP}`],
    [['--auth=no'], `\`--auth\` accepts no value except \`true\` and \`false\`; ${HELP}`],
    [['--auth='], `\`--auth\` accepts no value except \`true\` and \`false\`; ${HELP}`],
    [['--no-auth=false'], `\`--no-auth\` accepts no value; ${HELP}`],
    [['--port='], `invalid port \`\`; ${PORT}`],
    [['--port', 'http'], `invalid port \`http\`; ${PORT}`],
    [['--port', '65536'], `invalid port \`65536\`; ${PORT}`],
    [['--port=-1'], `invalid port \`-1\`; ${PORT}`],
    [['--port', '8787 '], `invalid port \`8787 \`; ${PORT}`],
    [['--port', 'a-secret-of-somebody'], `invalid port (redacted); ${PORT}`],
    [['--host='], '`--host` must not be empty'],
    [['--durable-streams-basin', 'X'], 'invalid basin `X`; `--durable-streams-basin` must be a basin name'],
    [['--durable-streams-path', '/'], 'invalid path `/`; `--durable-streams-path` must be like /v1/stream'],
    [
      ['--durable-streams-path', 'v1/stream'],
      'invalid path `v1/stream`; `--durable-streams-path` must be like /v1/stream',
    ],
    [
      ['--durable-streams-path', '/a b'],
      'invalid path `/a b`; `--durable-streams-path` must be like /v1/stream',
    ],
    [
      ['--durable-streams-path', '/a//'],
      'invalid path `/a//`; `--durable-streams-path` must be like /v1/stream',
    ],
    [['--storage', 'foo'], `unknown storage \`foo\`; ${LOCATIONS}`],
    [['--storage', 'Memory'], `unknown storage \`Memory\`; ${LOCATIONS}`],
    [['--storage='], `unknown storage \`\`; ${LOCATIONS}`],
    [
      ['--storage', 'postgres://me:secret@here:port/db'],
      'invalid URL in `--storage`; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    ],
    [['--storage', 'mysql://me:secret@here/db'], `unknown storage \`mysql:\`; ${LOCATIONS}`],
    [['--storage', 'http://localhost:8787'], `unknown storage \`http:\`; ${LOCATIONS}`],
    [['--storage', 'file:'], 'invalid `file:` URL in `--storage`: the path is empty'],
    [
      ['--storage', 'file:./data?mode=ro'],
      'invalid `file:` URL in `--storage`: a query or a fragment is not supported',
    ],
    [['--storage', 'file:./%zz'], 'invalid `file:` URL in `--storage`: URI malformed'],
    [
      ['--storage', './a', '--dir', 'b'],
      '`--dir` cannot be combined with `--storage`: both name the storage',
    ],
    [['--dir='], '`--dir` must not be empty'],
    [
      ['--no-auth', '--root-token', 'x'],
      '`--root-token` cannot be combined with `--no-auth`, which requires no token',
    ],
    [['--allowed-host'], `\`--allowed-host\` requires a value; ${HELP}`],
    [
      ['--allowed-host', 'a:80'],
      'invalid value `a:80` of `--allowed-host`; it must be the name of a host without a port',
    ],
    [
      ['--allowed-host='],
      'invalid value `` of `--allowed-host`; it must be the name of a host without a port',
    ],
    [
      ['--location', 'a', '--location', 'b c'],
      'invalid value `b c` of `--location`; it must be 1 to 64 letters, digits, colons, hyphens and dots',
    ],
    [['--location', 'a', '--location=a'], '`--location` names `a` twice'],
  ])('rejects %j', async (args, message) => {
    const { storage, counts } = counted(memory())
    const result = await resultOf(['serve', ...args], { storages: testStorages({ storage }) })
    expect(result).toEqual({ exitCode: 2, out: [], err: [`headwater: ${message}`] })
    expect(counts.opened).toBe(0)
  })

  it('has defaults', () => {
    expect(parseServeArguments([])).toEqual({
      port: 8787,
      host: '127.0.0.1',
      location: { kind: 'directory', path: './data' },
      auth: true,
      allowedOrigins: undefined,
      allowedHosts: undefined,
      locations: undefined,
      rootToken: undefined,
      tls: undefined,
      log: undefined,
      retention: undefined,
      publicMetrics: false,
      durableStreams: { basin: 'durable-streams', path: '/v1/stream' },
    })
  })

  it('reads options from the environment, and prefers those of the command line', () => {
    const env = {
      HEADWATER_PORT: '9000',
      HEADWATER_HOST: '0.0.0.0',
      HEADWATER_STORAGE: './elsewhere',
      HEADWATER_NO_AUTH: 'true',
      HEADWATER_ALLOW_ORIGIN: 'http://localhost:3000',
      HEADWATER_ALLOWED_HOST: 'streams.internal,streams.example',
      HEADWATER_LOCATION: 'eu,us',
      HEADWATER_TLS_CERT: 'cert.pem',
      HEADWATER_TLS_KEY: 'key.pem',
      HEADWATER_LOG: 'json',
      HEADWATER_RETENTION: '30d',
      HEADWATER_PUBLIC_METRICS: 'true',
    }
    const fromEnvironment = {
      port: 9000,
      host: '0.0.0.0',
      location: { kind: 'directory', path: './elsewhere' },
      auth: false,
      allowedOrigins: ['http://localhost:3000'],
      allowedHosts: ['streams.internal', 'streams.example'],
      locations: ['eu', 'us'],
      tls: { cert: 'cert.pem', key: 'key.pem' },
      log: 'json',
      retention: { ageSeconds: 2_592_000 },
      publicMetrics: true,
    }
    expect(parseServeArguments([], { env })).toMatchObject(fromEnvironment)
    const args = [
      '--auth',
      '--port',
      '80',
      '--dir',
      'd',
      '--log=text',
      '--retention=forever',
      '--no-public-metrics',
    ]
    expect(parseServeArguments(args, { env })).toMatchObject({
      ...fromEnvironment,
      auth: true,
      port: 80,
      location: { kind: 'directory', path: 'd' },
      log: 'text',
      retention: 'infinite',
      publicMetrics: false,
    })
    expect(
      parseServeArguments([], { env: { HEADWATER_PORT: '', HEADWATER_NO_AUTH: 'false' } }),
    ).toMatchObject({
      port: 8787,
      auth: true,
    })
  })

  it.each([
    [
      { HEADWATER_PORT: 'x' },
      'invalid port `x`; `--port` must be a number from 0 to 65535 (set in the environment: HEADWATER_PORT)',
    ],
    [{ HEADWATER_NO_AUTH: 'yes' }, 'invalid value `yes` of HEADWATER_NO_AUTH; it must be `true` or `false`'],
    [
      { HEADWATER_TLS_KEY: 'k' },
      '`--tls-cert` and `--tls-key` must be given together (set in the environment: HEADWATER_TLS_KEY)',
    ],
  ])('rejects the environment %j', async (env, message) => {
    expect(await resultOf(['serve'], { env })).toEqual({
      exitCode: 2,
      out: [],
      err: [`headwater: ${message}`],
    })
  })

  it('accepts several hosts and locations, in the order of their options', () => {
    const args = ['--location', 'eu', '--allowed-host=a', '--location=us', '--allowed-host', 'b.example']
    const env = { HEADWATER_LOCATION: 'other', HEADWATER_ALLOWED_HOST: 'other' }
    const expected = { locations: ['eu', 'us'], allowedHosts: ['a', 'b.example'] }
    expect(parseServeArguments(args, { env })).toMatchObject(expected)
  })

  it('rejects options that contradict each other', async () => {
    const problem = async (...args: string[]) => (await resultOf(['serve', ...args])).err[0]
    expect(await problem('--tls-cert', 'c')).toContain('`--tls-cert` and `--tls-key` must be given together')
    expect(await problem('--log', 'xml')).toContain('invalid log format `xml`; `--log` must be text or json')
  })

  it.each([
    [['--storage', 'memory'], { kind: 'memory' }],
    [['--storage', './data'], { kind: 'directory', path: './data' }],
    [['--storage', '.'], { kind: 'directory', path: '.' }],
    [['--storage', 'some/data'], { kind: 'directory', path: 'some/data' }],
    [['--storage', '/var/lib/data'], { kind: 'directory', path: '/var/lib/data' }],
    [['--storage', 'C:\\data'], { kind: 'directory', path: 'C:\\data' }],
    [['--storage', 'file:./data'], { kind: 'directory', path: './data' }],
    [['--storage', 'file:data'], { kind: 'directory', path: 'data' }],
    [['--storage', 'FILE:./my%20data'], { kind: 'directory', path: './my data' }],
    [['--dir', 'data'], { kind: 'directory', path: 'data' }],
    [['--dir', 'memory'], { kind: 'directory', path: 'memory' }],
  ])('with %j stores streams in %j', (args, location) => {
    expect(parseServeArguments(args).location).toEqual(location)
  })

  it.skipIf(process.platform === 'win32' /* its absolute URLs name a drive */)(
    'accepts an absolute file URL',
    () => {
      const { location } = parseServeArguments(['--storage', 'file:///var/my%20data'])
      expect(location).toEqual({ kind: 'directory', path: '/var/my data' })
    },
  )

  it.each([
    [['--no-auth'], false],
    [['--auth=false'], false],
    [['--auth'], true],
    [['--auth=true'], true],
  ])('with %j requires tokens: %s', (args, auth) => {
    expect(parseServeArguments(args).auth).toBe(auth)
  })

  it.each([
    [[], undefined],
    [['--allow-origin', '*'], true],
    [['--allow-origin', 'http://localhost:3000'], ['http://localhost:3000']],
    [
      ['--allow-origin=http://localhost:3000,https://app.example'],
      ['http://localhost:3000', 'https://app.example'],
    ],
  ])('with %j allows the origins %j', (args, allowedOrigins) => {
    expect(parseServeArguments(args).allowedOrigins).toEqual(allowedOrigins)
  })

  it.each(['localhost:3000', 'https://app.example/', 'http://a,*', ''])(
    'rejects the origin %j',
    (origins) => {
      expect(() => parseServeArguments([`--allow-origin=${origins}`])).toThrow(
        '`--allow-origin` must list origins',
      )
    },
  )

  it('accepts a value that begins with a hyphen after =', () => {
    expect(parseServeArguments(['--root-token=--no-auth'])).toMatchObject({
      rootToken: '--no-auth',
      auth: true,
    })
  })
})

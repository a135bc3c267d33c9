import { describe, expect, it } from 'vitest'
import { parseServeArguments } from '../../adapters/cli/serve-arguments.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { counted, directoryKind, memoryKind, resultOf } from './run.ts'

const HELP = 'See headwater serve --help'

describe('the options of headwater serve', () => {
  it.each([
    [['80'], `serve takes options only, but more was given. ${HELP}`],
    [['--', '80'], `serve takes options only, but more was given. ${HELP}`],
    [[''], `serve takes options only, but more was given. ${HELP}`],
    [['--prot', '80'], `unknown option --prot. ${HELP}`],
    [['--prot=80'], `unknown option --prot. ${HELP}`],
    [['--no-port'], `unknown option --no-port. ${HELP}`],
    [['--rootToken', 'x'], `unknown option. ${HELP}`],
    [['--__proto__', 'x'], `unknown option. ${HELP}`],
    [['--constructor=x'], `unknown option --constructor. ${HELP}`],
    [['-p', '80'], `unknown option -p. ${HELP}`],
    [['-'], `unknown option. ${HELP}`],
    [['--port'], `--port needs a value. ${HELP}`],
    [['--port', '--open'], /^--port needs a value; one that begins with a hyphen goes behind =/],
    [['--port', '1', '--port', '2'], `--port is given twice. ${HELP}`],
    [['--open', '--no-open'], `--open is given twice. ${HELP}`],
    [['--open=no'], `--open takes no value but true or false. ${HELP}`],
    [['--open='], `--open takes no value but true or false. ${HELP}`],
    [['--no-open=false'], `--no-open takes no value but true or false. ${HELP}`],
    [['--port='], '--port must be a number from 0 to 65535, not nothing'],
    [['--port', 'http'], '--port must be a number from 0 to 65535, not http'],
    [['--port', '65536'], '--port must be a number from 0 to 65535, not 65536'],
    [['--port=-1'], '--port must be a number from 0 to 65535, not -1'],
    [['--port', '8787 '], '--port must be a number from 0 to 65535, not 8787 '],
    [['--port', 'a-secret-of-somebody'], '--port must be a number from 0 to 65535, not (what was given)'],
    [['--host='], '--host must not be empty'],
    [['--storage', 'clay'], 'unknown storage clay. Allowed: memory, shelf'],
    [['--storage='], 'unknown storage nothing. Allowed: memory, shelf'],
    [['--storage', 'shelf'], '--storage shelf needs --dir DIR'],
    [['--storage', 'memory', '--dir', 'd'], '--dir does not go with --storage memory'],
    [['--dir='], '--dir must not be empty'],
    [['--open', '--root-token', 'x'], '--root-token does not go with --open, which demands no token'],
  ])('%j are refused', async (args, message) => {
    const { storage, counts } = counted(memory())
    const { exitCode, err, out } = await resultOf(['serve', ...args], {
      storages: [memoryKind(storage), directoryKind()],
    })
    expect([exitCode, out, err.length]).toEqual([2, [], 1])
    if (typeof message === 'string') expect(err[0]).toBe(`headwater: ${message}`)
    else expect(err[0]!.slice('headwater: '.length)).toMatch(message)
    expect(counts.opened).toBe(0)
  })

  it('have defaults', () => {
    expect(parseServeArguments([], [memoryKind()])).toEqual({
      port: 8787,
      host: '127.0.0.1',
      storage: undefined,
      directory: undefined,
      open: false,
      rootToken: undefined,
    })
  })

  it.each([
    [['--open'], true],
    [['--open=true'], true],
    [['--open=false'], false],
    [['--no-open'], false],
  ])('%j opens: %s', (args, open) => {
    expect(parseServeArguments(args, [memoryKind()]).open).toBe(open)
  })

  it('take values that begin with a hyphen behind =', () => {
    expect(parseServeArguments(['--root-token=--no-open'], [memoryKind()])).toMatchObject({
      rootToken: '--no-open',
      open: false,
    })
  })

  it('ask for a directory where no storage lives in one', async () => {
    expect(await resultOf(['serve', '--dir', 'd'])).toEqual({
      exitCode: 1,
      out: [],
      err: ['headwater: this version has no storage that keeps its data in a directory, only memory'],
    })
  })
})

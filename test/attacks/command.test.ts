import { describe, expect, test } from 'vitest'
import { parseServeArguments } from '../../adapters/cli/arguments.ts'
import { openService } from '../../adapters/cli/service.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

describe('the command', () => {
  test('what goes wrong inside is told to somebody', async () => {
    const told: unknown[] = []
    const service = await openService({ storage: 'memory', onError: (error) => told.push(error) })
    await service.handler(new Request('http://localhost/v1/basins/some-basin', { method: 'PUT' }))
    const request = new Request('http://localhost/v1/basins', {
      method: 'POST',
      headers: JSON_TYPE,
      body: '{}',
    })
    await request.text()
    expect((await service.handler(request)).status).toBe(500)
    expect(told).toHaveLength(1)
    await service.close()
  })
  test.each([
    ['--open=false'],
    ['--no-open'],
    ['--open', '--no-open'],
    ['--open=0'],
    ['--open=no'],
    ['--open='],
  ])('%s does not open', (...args) => {
    let open: unknown
    try {
      open = parseServeArguments(args).open
    } catch {
      open = false
    }
    expect(open).toBe(false)
  })
  test.each([
    ['--port'],
    ['--port='],
    ['--host'],
    ['--port', '--open'],
    ['--storage'],
    ['-x'],
    ['--__proto__', 'x'],
    ['--portt=1'],
  ])('nonsense is refused: %s %s', (...args) => {
    let result: unknown
    try {
      result = parseServeArguments(args)
    } catch (error) {
      result = error
    }
    expect(result).toMatchObject({ exitCode: 2 })
  })
})

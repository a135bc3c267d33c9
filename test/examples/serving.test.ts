import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
// @ts-expect-error: a plain script without types
import { serveExample } from '../../examples/serve.mjs'
// @ts-expect-error: a plain script without types
import { exampleArguments, USAGE } from '../../scripts/example-arguments.mjs'

it.each([
  [['local-first-chat'], { name: 'local-first-chat', port: 8788 }],
  [['published-client'], { name: 'published-client', port: 8789 }],
  [['shared-todo'], { name: 'shared-todo', port: 8790 }],
  [['resumable-chat'], { name: 'resumable-chat', port: 8791 }],
  [['published-client', '--port', '0'], { name: 'published-client', port: 0 }],
  [[], undefined],
  [['toString'], undefined],
  [['local-first-chat', 'published-client'], undefined],
  [['local-first-chat', '--port', 'x'], undefined],
  [['local-first-chat', '--port', '65536'], undefined],
  [['local-first-chat', '--host', '0.0.0.0'], undefined],
])('npm run example interprets %j as %j', (args, expected) => {
  expect(exampleArguments(args)).toEqual(expected)
})

it('npm run example lists every example that can be served', async () => {
  const examples = join(import.meta.dirname, '..', '..', 'examples')
  const names = (await readdir(examples)).filter((name) => existsSync(join(examples, name, 'public')))
  const [, listed] = /^examples: (.*)$/m.exec(USAGE)!
  expect(listed!.split(', ').sort()).toEqual(names.sort())
})

it('serves the files of an example, and no others', { tags: ['slow'] }, async () => {
  const { url, close } = await serveExample('published-client', 0)
  onTestFinished(close)
  const statuses = async (...paths: string[]) =>
    Promise.all(paths.map(async (path) => (await fetch(`${url}${path}`)).status))
  const served = ['/', '/main.js', '/style.css', '/service-worker.js']
  expect(await statuses(...served)).toEqual(served.map(() => 200))
  expect(await statuses('/v1/basins', '/service-worker.ts', '/../build.mjs')).toEqual([404, 404, 404])
})

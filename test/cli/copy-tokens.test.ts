import { expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { resultOf, testStorages } from './run.ts'

const LOCAL = 'postgres://local/db'
const OTHERS = { HEADWATER_TOKEN: 'of-a-third-server', HEADWATER_ROOT_TOKEN: 'of-this-machine' }

it.each([
  ['neither variable', {}, null, null],
  ['that of FROM', { HEADWATER_FROM_TOKEN: 'from' }, 'Bearer from', null],
  ['that of TO', { HEADWATER_TO_TOKEN: 'to' }, null, 'Bearer to'],
  ['both', { HEADWATER_FROM_TOKEN: 'from', HEADWATER_TO_TOKEN: 'to' }, 'Bearer from', 'Bearer to'],
])('sends each server of a copy its own token and no other, with %s', async (_, env, from, to) => {
  const sent = new Map<string, Set<string | null>>()
  const fetch = async (request: Request) => {
    const { hostname } = new URL(request.url)
    sent.set(hostname, (sent.get(hostname) ?? new Set()).add(request.headers.get('authorization')))
    if (hostname === 'to.example') return Response.json({ code: 'authn', message: 'no' }, { status: 401 })
    return Response.json({ basins: [], has_more: false })
  }
  const storage = memory()
  const hw = await open({ storage })
  await hw.createBasin('basin')
  await hw.close()
  const world = {
    fetch,
    env: { ...OTHERS, ...env },
    storages: testStorages({ directories: new Map([[LOCAL, storage]]) }),
  }
  const copies = [
    ['http://from.example', LOCAL],
    [LOCAL, 'http://to.example'],
  ]
  for (const [source, target] of copies) await resultOf(['copy', source!, target!], world)
  expect([...sent]).toEqual([
    ['from.example', new Set([from])],
    ['to.example', new Set([to])],
  ])
})

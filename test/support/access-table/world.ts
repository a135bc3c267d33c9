import type { Engine } from '../../../src/index.ts'

/** The resources of the table by their letters. Those with a capital letter exist. */
export const BASINS = { A: 'acme-main', a: 'acme-gone', B: 'other-main', b: 'other-gone' } as const
export const TOKEN_IDS = { A: 'team/one', a: 'team/gone', B: 'boss/one', b: 'boss/gone' } as const
export const STREAMS = {
  A: ['acme-main', 'logs/main'],
  a: ['acme-main', 'logs/gone'],
  B: ['acme-main', 'audit/main'],
  b: ['acme-main', 'audit/gone'],
  C: ['other-main', 'logs/main'],
  c: ['other-main', 'logs/gone'],
  d: ['acme-gone', 'logs/gone'],
  e: ['other-gone', 'logs/gone'],
} as const satisfies Record<string, readonly [basin: string, stream: string]>

export function exists(letter: string): boolean {
  return letter === letter.toUpperCase()
}

function existing<Resource>(resources: Readonly<Record<string, Resource>>): Resource[] {
  return Object.keys(resources)
    .filter(exists)
    .map((letter) => resources[letter]!)
}

/**
 * Restores the initial resources: creates the missing ones and deletes all others. Each stream has a record.
 */
export async function restore(owner: Engine, settle: () => Promise<void>): Promise<void> {
  const basins: readonly string[] = existing(BASINS)
  for (const { name, state } of (await owner.listBasins()).items) {
    if (!basins.includes(name) && state === 'active') await owner.basin(name).delete()
  }
  while ((await owner.listBasins()).items.some(({ state }) => state === 'deleting')) await settle()
  for (const name of basins) await owner.ensureBasin(name)
  const streams = existing<readonly [string, string]>(STREAMS)
  for (const basin of basins) {
    const expected = streams.filter(([basinOfStream]) => basinOfStream === basin).map(([, name]) => name)
    for (const { name } of (await owner.basin(basin).listStreams()).items) {
      if (!expected.includes(name)) await owner.basin(basin).stream(name).delete()
    }
  }
  for (const [basin, name] of streams) {
    await owner.basin(basin).ensureStream(name)
    const stream = owner.basin(basin).stream(name)
    if ((await stream.checkTail()).seqNum === 0) await stream.append('a record')
  }
  const ids: readonly string[] = Object.values(TOKEN_IDS)
  const listed = (await owner.listAccessTokens()).items.map(({ id }) => id)
  for (const id of ids.filter((id) => listed.includes(id))) await owner.revokeAccessToken(id)
  for (const id of existing(TOKEN_IDS)) await owner.issueAccessToken({ id, scope: { ops: ['read'] } })
}

/** Everything that a call can change, as text: it is equal before and after a call without effect. */
export async function snapshot(owner: Engine): Promise<string> {
  const basins = await Promise.all(
    (await owner.listBasins()).items.map(async (info) => {
      // It may be gone by now.
      if (info.state === 'deleting') return [info]
      const basin = owner.basin(info.name, { autoCreate: false })
      const streams = await Promise.all(
        (await basin.listStreams()).items.map(async (stream) => [
          stream,
          await basin.stream(stream.name).config(),
          await basin.stream(stream.name).checkTail(),
        ]),
      )
      return [info, await owner.basin(info.name).config(), streams]
    }),
  )
  return JSON.stringify([basins, await owner.listAccessTokens(), await owner.defaultLocation()])
}

import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type SyncedRecord, syncedStream } from '../../adapters/sync/index.ts'
import { open } from '../../src/index.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()

describe.each([FETCH, S2S])('the published client ($name) and a synced stream', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  /** A stream of the published client, and devices that sync it. */
  async function shared() {
    const published = await basin.stream()
    const device = async () => {
      const remote = await connect({ url: server.url, headerPrefix: 's2' })
      const hw = await open({ storage: memory() })
      const synced = syncedStream(
        remote.basin(basin.name).stream(published.name),
        hw.basin(basin.name).stream(published.name),
      )
      onTestFinished(async () => {
        await synced.close()
        await remote.close()
        await hw.close()
      })
      const confirmed = async () => {
        const records: SyncedRecord[] = []
        for await (const record of synced.read()) if (!record.isPending) records.push(record)
        return records
      }
      return { synced, confirmed }
    }
    return { published, device }
  }

  it('keep the headers of each other, and need none of their own', async () => {
    const { published, device } = await shared()
    const { synced, confirmed } = await device()
    await published.append(
      AppendInput.create([AppendRecord.string({ body: 'theirs', headers: [['author', 'a program']] })]),
    )
    const appended = await synced.append({ body: 'own', headers: [['author', 'a device']] })
    const { start } = await appended.confirmed()
    expect(start.seqNum).toBe(1)
    const { records } = await published.read({ start: { from: { seqNum: 0 } } })
    expect(records.map(({ body }) => body)).toEqual(['theirs', 'own'])
    expect(records[0]!.headers).toEqual([['author', 'a program']])
    // The device adds a header behind the others, which tells it what it has sent.
    expect(records[1]!.headers).toEqual([
      ['author', 'a device'],
      ['headwater-origin', expect.stringMatching(/^[\w-]+\/\d+\/\w+$/)],
    ])
    const shown = async () =>
      (await confirmed()).map(({ body, headers, origin }) => [body, headers, origin !== undefined])
    // The device may not have copied yet what the server has confirmed.
    await expect.poll(shown).toEqual([
      ['theirs', [['author', 'a program']], false],
      ['own', [['author', 'a device']], true],
    ])
  })
})

import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { bodies, strings, stringWhen, take } from './records.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()
/** Every byte, in a body and in headers. */
const BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

describe.each([FETCH, S2S])(
  'the published client ($name) and headwater/client on one stream',
  async (transport) => {
    const basin = await basinOfFile(server.url, transport)

    async function both() {
      const published = await basin.stream()
      const hw = await connect({ url: server.url, headerPrefix: 's2' })
      return { published, hw, own: hw.basin(basin.name).stream(published.name) }
    }

    it('read the records of each other', async () => {
      const { published, hw, own } = await both()
      await published.append(strings('a', 'b'))
      await own.append(['c', { body: 'd', headers: [['k', 'v']] }])
      await own.append({ body: BYTES, headers: [[BYTES, BYTES]] })
      await published.append(
        AppendInput.create([AppendRecord.bytes({ body: BYTES, headers: [[BYTES, BYTES]] })]),
      )
      const { records } = await published.read({ start: { from: { seqNum: 0 } } }, { as: 'bytes' })
      const ownRecords = await own.read({}, { as: 'bytes' }).toArray()
      const plain = (list: readonly { seqNum: number; headers: readonly unknown[]; body: Uint8Array }[]) =>
        list.map(({ seqNum, headers, body }) => ({ seqNum, headers, body }))
      expect(plain(ownRecords)).toEqual(plain(records))
      expect(ownRecords).toHaveLength(6)
      await hw.close()
    })

    it('follow each other live', async () => {
      const { published, hw, own } = await both()
      const session = await published.readSession({ start: { from: { seqNum: 0 } } })
      await own.append(['a', 'b'])
      expect(bodies(await take(session, 2))).toEqual(['a', 'b'])
      const followed: string[] = []
      for await (const { body } of own.follow({ seqNum: 0 })) {
        followed.push(body)
        if (body === 'b') await published.append(strings('c'))
        if (body === 'c') break
      }
      expect(followed).toEqual(['a', 'b', 'c'])
      await session.cancel().catch(() => {})
      await hw.close()
    })

    it('respect the conditions and fences of each other', async () => {
      const { published, hw, own } = await both()
      await published.append(AppendInput.create([AppendRecord.fence('theirs')]))
      await expect(own.append('x', { fencingToken: 'mine' })).rejects.toMatchObject({
        code: 'fencing_token_mismatch',
        fencingToken: 'theirs',
      })
      await own.append('a', { fencingToken: 'theirs', matchSeqNum: 1 })
      await own.fence('mine')
      await expect(published.append(stringWhen('y', { fencingToken: 'theirs' }))).rejects.toMatchObject({
        status: 412,
      })
      const [{ command } = {}] = (await own.readBatch({ seqNum: 0, count: 1 })).records
      expect(command).toEqual({ kind: 'fence', token: 'theirs' })
      await hw.close()
    })
  },
)

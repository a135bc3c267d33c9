import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { closeRecord } from '../../src/index.ts'
import { all, bodies, strings, stringWhen, take } from './records.ts'
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

    it('end their sessions when the stream is closed', async () => {
      const { published, hw, own } = await both()
      const following = published.readSession({ start: { from: { seqNum: 0 } } }).then(all)
      const ownFollowing = own.follow({ seqNum: 0 }).toArray()
      await own.append(['a', closeRecord()])
      expect(bodies(await following)).toEqual(['a', ''])
      expect((await ownFollowing).map(({ body }) => body)).toEqual(['a', ''])
      const atTail = await published.readSession({ start: { from: { seqNum: 2 } } })
      expect(await all(atTail)).toEqual([])
      expect(await published.checkTail()).toMatchObject({ tail: { seqNum: 2 } })
      await expect(published.append(strings('b'))).rejects.toMatchObject({
        status: 409,
        code: 'stream_closed',
      })
      await hw.close()
    })

    it('close the stream with the command record', async () => {
      const { published, hw, own } = await both()
      const record = AppendRecord.string({ body: '', headers: [['', 'close']] })
      await published.append(AppendInput.create([record]))
      expect(await own.checkTail()).toMatchObject({ seqNum: 1, closed: true })
      await hw.close()
    })
  },
)

import { Child } from '../harness/child.ts'
import { loadClient, loadSync, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'

interface Place {
  readonly directory: string
  readonly size: number
  /** Of a body. */
  readonly bytes: number
}

host({
  /** Copies the whole stream of a server, in another process, into memory. */
  async mirror({ directory, size, bytes }: Place) {
    const server = new Child('headwater-server', process.env.HEADWATER_DIST!)
    const { port } = await server.prepare('filled server', { directory, size, bytes })
    const { connect } = await loadClient()
    const { mirror } = await loadSync()
    const client = await connect({ url: `http://127.0.0.1:${port}` })
    const remote = client.basin('my-basin').stream('streams/1')
    return {
      async turn() {
        const headwater = await openHeadwater()
        const local = streamNumber(headwater, 1)
        const copy = mirror(remote, local)
        await new Promise<void>((resolve, reject) => {
          copy.state$.subscribe((state) => {
            if (state.kind === 'live') resolve()
            else if ('error' in state) reject(state.error)
          })
        })
        const { seqNum } = await local.checkTail()
        if (seqNum !== size) throw new Error(`copied ${seqNum} records of ${size}`)
        await headwater.close()
        return size
      },
      async close() {
        await client.close()
        await server.close()
      },
    }
  },
})

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bodies, strings, take } from './records.ts'
import { basinOn, S2S_GZIP, TRANSPORTS } from './support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
if (!existsSync(cli))
  execFileSync('npm', ['run', 'build'], { cwd: root, shell: process.platform === 'win32' })

/** The command as it is installed, on a free port, until it says that it is ready. */
async function startCli(): Promise<{ child: ChildProcess; url: string; errors: string[] }> {
  const child = spawn(process.execPath, [cli, 'serve', '--open', '--port', '0'])
  onTestFinished(() => void child.kill('SIGKILL'))
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(String(chunk)))
  let url: string | undefined
  for await (const line of createInterface(child.stdout)) {
    url ??= /http:\S+/.exec(line)?.[0]
    if (url !== undefined && line.startsWith('Press Ctrl+C')) return { child, url, errors }
  }
  throw new Error(`it ended: ${errors.join('')}`)
}

describe.each(TRANSPORTS)('headwater serve, by $name', (transport) => {
  it('serves the published client and stops when asked to, sessions or not', async () => {
    const { child, url, errors } = await startCli()
    const basin = await basinOn(url, transport, { retry: { maxAttempts: 1 } })
    const stream = await basin.stream('history')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    const session = await stream.appendSession()
    expect((await (await session.submit(strings('live'))).ack()).end.seqNum).toBe(2)
    await session.close()
    expect(bodies(await take(follower, 2))).toEqual(['history', 'live'])
    await expect(basin.handle('missing').checkTail()).rejects.toMatchObject({ status: 404 })

    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await expect(take(follower, 1)).rejects.toMatchObject({ status: 503 })
    await basin.close()
    expect(await exited).toEqual([0, null])
    expect(errors).toEqual([])
  })
})

describe('two commands', () => {
  it('share nothing', async () => {
    const [one, two] = [await startCli(), await startCli()]
    const basin = await basinOn(one.url, S2S_GZIP)
    const other = await basinOn(two.url, S2S_GZIP)
    expect((await other.s2.basins.list()).basins.map(({ name }) => name)).toEqual([other.name])
    expect((await basin.s2.basins.list()).basins.map(({ name }) => name)).toEqual([basin.name])
  })
})

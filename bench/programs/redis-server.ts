import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { host, type Usage } from '../harness/host.ts'

/** What Linux counts processor time in. */
const TICK_MS = 10

host({
  async server({ directory }: { directory: string }) {
    const socket = join(directory, 'redis.sock')
    const persistence = ['--dir', directory, '--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
    const redis = spawn('redis-server', ['--port', '0', '--unixsocket', socket, ...persistence], {
      stdio: 'ignore',
    })
    process.on('exit', () => redis.kill())
    while (!existsSync(socket)) await setTimeout(10)
    return {
      info: { path: socket },
      usage: () => usageOf(redis.pid!),
      async close() {
        const exited = new Promise((resolve) => redis.once('exit', resolve))
        connect(socket).end('SHUTDOWN NOSAVE\r\n')
        await exited
      },
    }
  },
})

function usageOf(pid: number): Usage {
  // The fields after the name of the program, which may contain spaces.
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]
  return { cpuMs: (Number(stat[11]) + Number(stat[12])) * TICK_MS, peakBytes: Number(peak) * 1024 }
}

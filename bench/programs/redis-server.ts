import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { host, usageOf } from '../harness/host.ts'

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

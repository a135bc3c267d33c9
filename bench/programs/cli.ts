import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { host } from '../harness/host.ts'

interface Place {
  readonly directory: string
  readonly size: number
}

const LINE = `${'x'.repeat(99)}\n`
const LINES_AT_ONCE = 10_000
const STREAM = 'app-logs/web/1'

/** A program for `node -e`. */
const COPY_LINES = `
const { crc32 } = require('node:zlib')
const { open } = require('node:fs/promises')
const copy = async () => {
  const file = await open(process.argv[1], 'w')
  let lines = 0
  for await (const chunk of process.stdin) {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
    const sum = Buffer.alloc(4)
    sum.writeUInt32LE(crc32(chunk))
    await file.writev([sum, chunk])
  }
  await file.datasync()
  await file.close()
  if (lines === 0) throw new Error('no lines')
}
copy()
`

host({
  /** `cat FILE | headwater append` into a new directory. */
  'headwater append'(place: Place) {
    const log = writeLog(place)
    const storage = join(place.directory, 'data')
    return {
      reset: () => rmSync(storage, { recursive: true, force: true }),
      turn: () => pipe(log, [process.execPath, cli(), 'append', STREAM, '--storage', storage, '--quiet']),
    }
  },
  /** `cat FILE | cat` into a file, and one `fsync`. */
  cat(place: Place) {
    const log = writeLog(place)
    const copy = join(place.directory, 'copy')
    return {
      reset: () => rmSync(copy, { force: true }),
      turn() {
        const file = openSync(copy, 'w')
        pipe(log, ['cat'], file)
        fsyncSync(file)
        closeSync(file)
      },
    }
  },
  /** `cat FILE | node`, which finds the lines and sums, writes and syncs each chunk, and knows no records. */
  'bare lines'(place: Place) {
    const log = writeLog(place)
    const copy = join(place.directory, 'copy')
    return {
      reset: () => rmSync(copy, { force: true }),
      turn: () => pipe(log, [process.execPath, '-e', COPY_LINES, copy]),
    }
  },
  /** A line over HTTP until `headwater tail -f` has printed it. */
  async 'headwater tail'() {
    const server = spawn(process.execPath, [
      cli(),
      'serve',
      '--no-auth',
      '--port',
      '0',
      '--storage',
      'memory',
    ])
    const [welcome] = await once(server.stdout, 'data')
    const url = /http:\S+/.exec(String(welcome))![0]
    const env = { ...process.env, HEADWATER_URL: url }
    execFileSync(process.execPath, [cli(), 'append', STREAM, 'first', '--quiet'], { env, stdio: 'ignore' })
    const follower = spawn(process.execPath, [cli(), 'tail', '-f', STREAM], { env })
    const lines = createInterface(follower.stdout)
    await once(lines, 'line')
    return {
      async turn(count) {
        for (let i = 0; i < count; i++) {
          const shown = once(lines, 'line')
          const response = await fetch(`${url}/v1/streams/${encodeURIComponent('web/1')}/records`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'svc-basin': 'app-logs' },
            body: '{"records":[{"body":"line"}]}',
          })
          await response.arrayBuffer()
          await shown
        }
      },
      close: () => Promise.all([ended(follower), ended(server)]),
    }
  },
})

function cli(): string {
  return join(process.env.HEADWATER_DIST!, 'cli.js')
}

function writeLog({ directory, size }: Place): string {
  const path = join(directory, 'big.log')
  const file = openSync(path, 'w')
  for (let done = 0; done < size; done += LINES_AT_ONCE) {
    writeFileSync(file, LINE.repeat(Math.min(LINES_AT_ONCE, size - done)))
  }
  fsyncSync(file)
  closeSync(file)
  return path
}

/** Runs `cat FILE | COMMAND` in a shell, as a user would. */
function pipe(path: string, command: readonly string[], output: number | 'ignore' = 'ignore'): void {
  const script = 'cat "$0" | "$@"'
  execFileSync('sh', ['-c', script, path, ...command], { stdio: ['ignore', output, 'ignore'] })
}

async function ended(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM')
  await once(child, 'exit')
}

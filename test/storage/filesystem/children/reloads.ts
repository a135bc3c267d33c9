import { readdirSync, writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { type Engine, open } from '../../../../src/index.ts'
import { type Clock, systemClock } from '../../../../src/runtime/clock.ts'
import type { StorageContext, StorageSession } from '../../../../src/storage/contract.ts'

const RELOADS = 50
const [directory] = process.argv.slice(2)
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let timers = 0
const clock: Clock = {
  now: () => systemClock.now(),
  schedule(delayMs, callback, options) {
    timers++
    let isSet = true
    const end = () => {
      if (isSet) timers--
      isSet = false
    }
    const cancel = systemClock.schedule(
      delayMs,
      () => {
        end()
        callback()
      },
      options,
    )
    return () => {
      end()
      cancel()
    }
  },
}

let received = 0

async function follow(hw: Engine, onOpen: () => void): Promise<void> {
  const session = hw.basin('my-basin').stream('log').follow({ seqNum: 0 })
  for await (const _ of session) {
    received++
    onOpen()
  }
}

const sessions: WeakRef<StorageSession>[] = []

/** The work of a module that is evaluated again. */
async function load(reload: number): Promise<void> {
  const { manifest, open: openSession } = filesystem(directory!)
  const storage = {
    manifest,
    async open(context: StorageContext) {
      const session = await openSession(context)
      sessions.push(new WeakRef(session))
      return session
    },
  }
  const hw = await open({ storage, clock })
  await hw.basin('my-basin').stream('log').append(`${reload}`)
  if (reload === 0) await new Promise<void>((resolve) => void follow(hw, resolve).catch(() => {}))
}

function descriptors(): number {
  return process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0
}

await load(0)
const before = descriptors()
for (let reload = 1; reload < RELOADS; reload++) await load(reload)
// The follower of the first engine receives what all others have appended.
while (received < RELOADS) await setImmediate()
for (let i = 0; i < 20; i++) {
  await setImmediate()
  collectGarbage()
}
const alive = sessions.filter((session) => session.deref() !== undefined)
const found = { engines: alive.length, timers, descriptors: descriptors() - before, received }
for (const session of alive) await session.deref()?.close()
const owners = readdirSync(directory!).filter((name) => name.startsWith('lock')).length
writeSync(1, `${JSON.stringify({ ...found, owners })}\n`)

// @module-tag slow

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bundleProgram, Child } from '../../../support/child-process.ts'
import { temporaryDirectory } from '../directories.ts'

const canUnshare = isPossible('unshare', ['--time', '--boottime', '1', '--pid', '--fork', 'true'])
/** Why a test does not run. */
const rootOnly = canUnshare ? '' : ' (skipped: only root on Linux makes namespaces)'

test.runIf(canUnshare)(
  `a live owner is not taken for dead by a process in another time namespace${rootOnly}`,
  async () => {
    const base = await temporaryDirectory()
    const directory = join(base, 'data')
    const program = await bundleProgram(new URL('../children/holder.ts', import.meta.url), base)
    const owner = new Child(program, [directory])
    await owner.printed(1)
    expect(owner.lines).toEqual(['open'])
    const open = [process.execPath, program, directory, 'exit-when-told']
    const openInNamespace = () => run('unshare', ['--time', '--boottime', '100000', ...open])
    expect(openInNamespace()).toMatch(/^blocked/)
    await owner.kill()
    expect(openInNamespace()).toBe('open\n')
  },
)

test.runIf(canUnshare)(
  `a process with the /proc of another container does not look up pids there${rootOnly}`,
  async () => {
    const program = await bundleProgram(
      new URL('../children/identity.ts', import.meta.url),
      await temporaryDirectory(),
    )
    const inside = JSON.parse(run('unshare', ['--pid', '--fork', process.execPath, program]))
    expect(inside.own.namespace).toMatch(/^pid:/)
    expect(inside.own.started).toBeUndefined()
    expect(inside.liveness).toBe('unknown')
    const inPidNamespace = ['--pid', '--fork', '--mount-proc', process.execPath, program]
    const { own, liveness } = JSON.parse(run('unshare', inPidNamespace))
    expect(own.started).toMatch(/^\d+$/)
    expect(liveness).toBe('dead')
  },
)

test.runIf(canUnshare)(`a boot id that was made up for a container is ignored${rootOnly}`, async () => {
  const program = await bundleProgram(
    new URL('../children/identity.ts', import.meta.url),
    await temporaryDirectory(),
  )
  const boot = '/proc/sys/kernel/random/boot_id'
  const script = `mount --bind /etc/hostname ${boot} && exec "$0" "$1"`
  const { own } = JSON.parse(run('unshare', ['--mount', 'sh', '-c', script, process.execPath, program]))
  expect(own.boot).toBeUndefined()
})

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { input: '', encoding: 'utf8' })
}

function isPossible(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
